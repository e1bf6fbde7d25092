//! Files: descriptors, the file tree that programs see, and waiting for host files.

pub(crate) mod attempt;
pub(crate) mod epoll;
pub(crate) mod files;
pub(crate) mod locks;
pub(crate) mod memory_files;
pub(crate) mod objects;
pub(crate) mod poll;
pub(crate) mod pty;
pub(crate) mod terminal;
pub(crate) mod terminals;
pub(crate) mod umask;
pub(crate) mod vfs;
