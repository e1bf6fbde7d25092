//! The binary interface of arm64 Linux: programs, how they start, and the data passed in system calls.

pub(crate) mod content;
pub mod elf;
mod exported;
pub(crate) mod layout;
pub(crate) mod load;
pub(crate) mod open;
pub(crate) mod stack;
pub(crate) mod time;
pub(crate) mod uname;
