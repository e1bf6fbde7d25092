//! Why a program cannot be started.

use std::path::PathBuf;

use crate::abi::elf::ElfError;

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}; check the path and its permissions", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The host's error.
        source: std::io::Error,
    },
    /// The file is not a program that can run.
    #[error("{}: {source}", path.display())]
    Elf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ElfError,
    },
    /// The interpreter of a dynamic program does not exist.
    #[error(
        "{}: dynamically linked, and its interpreter {} cannot be opened ({source}; looked for in: {searched}); \
         name the folder that has it with --sysroot DIR, or link the program with -static",
        path.display(),
        interpreter.display()
    )]
    Interpreter {
        /// The program.
        path: PathBuf,
        /// The path of the interpreter in the program.
        interpreter: PathBuf,
        /// Where it was searched.
        searched: String,
        /// The host's error.
        source: std::io::Error,
    },
    /// The host does not provide enough address space.
    #[error("cannot reserve {bytes} bytes of address space for the program's memory: {source}; lower the memory limit")]
    Reserve {
        /// Bytes requested.
        bytes: u64,
        /// The host's error.
        source: std::io::Error,
    },
    /// The stack does not fit.
    #[error("stack of {bytes} bytes: choose one between 64 KiB and 32 GiB")]
    StackSize {
        /// The requested size.
        bytes: u64,
    },
    /// Arguments and environment are too long for the stack.
    #[error(
        "arguments and environment take {bytes} bytes and the stack has room for {limit}; pass less, or enlarge the stack"
    )]
    ArgumentsTooLong {
        /// Bytes needed.
        bytes: u64,
        /// Bytes available.
        limit: u64,
    },
    /// The machine has too little memory for the start of the program.
    #[error("no memory left for {bytes} bytes at the start of the program; give the machine more memory")]
    NoMemory {
        /// Bytes needed.
        bytes: u64,
    },
    /// The machine cannot run Linux programs as described.
    #[error("machine description: {what}")]
    Platform {
        /// What is wrong.
        what: String,
    },
    /// A host file could not be prepared.
    #[error("cannot prepare standard input, output and the current directory: {0}")]
    Host(#[from] std::io::Error),
}
