//! Communication between threads and processes: futexes, pipes and sockets, System V shared memory, the hardware barrier.

pub(crate) mod barrier;
pub(crate) mod channels;
pub(crate) mod cmg;
pub(crate) mod futex;
pub(crate) mod mqueue;
pub(crate) mod shm;
pub(crate) mod sysv;
