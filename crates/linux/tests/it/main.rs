//! The integration tests of `fxscope-linux`, as one binary so that they link once.

mod barrier;
mod blocking;
mod budget;
mod common;
mod containment;
mod descriptors;
mod elf;
mod events;
mod files;
mod hostile;
mod identity;
mod ipc;
mod layering;
mod memory_files;
mod network;
mod pages;
mod proc;
mod processes;
mod programs;
mod sectors;
mod shared;
mod snapshot;
mod stop;
mod thp;
mod threads;
mod vectors;
