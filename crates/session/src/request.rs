//! A scenario with all choices resolved.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use fxscope_linux::pages::MemoryPolicy;
use fxscope_linux::{Access, Stdio};
use fxscope_machine::Spec;

use crate::RunOptions;

/// A [`crate::Scenario`] with all choices resolved and its machine loaded.
pub struct Request {
    /// The machine.
    pub spec: Arc<Spec>,
    /// Settings that differ from the machine's description. The record keeps them; `spec` includes them already.
    pub settings: Vec<(String, String)>,
    /// The program's file.
    pub program: PathBuf,
    /// Its name, the first entry of `argv`; `None`: its path.
    pub name: Option<OsString>,
    /// Its arguments, without its name.
    pub arguments: Vec<OsString>,
    /// Its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Names of variables that the record keeps in addition to those that affect speed.
    pub recorded_variables: Vec<OsString>,
    /// What the program may access on the host.
    pub access: Access,
    /// The nodes that the program's memory comes from.
    pub memory_policy: MemoryPolicy,
    /// Bytes of pages that each process has on nodes with cores before further ones go to memory tiers; `None`: as much as there is.
    pub fast_memory: Option<u64>,
    /// Bytes of memory the program may use; `None`: all that the machine has.
    pub memory_bytes: Option<u64>,
    /// The CPUs the program may run on; `None`: all.
    pub cpus: Option<Vec<u32>>,
    /// The program's standard streams; `None`: those of this process.
    pub stdio: Option<Stdio>,
    /// Notes on choices that were made for the user; the record keeps them.
    pub notes: Vec<String>,
    /// How the program is simulated.
    pub options: RunOptions,
}

impl Request {
    /// Returns a run of `program` with full timing, without arguments and environment.
    #[must_use]
    pub fn new(spec: Arc<Spec>, program: impl Into<PathBuf>) -> Request {
        Request {
            spec,
            settings: Vec::new(),
            program: program.into(),
            name: None,
            arguments: Vec::new(),
            environment: Vec::new(),
            recorded_variables: Vec::new(),
            access: Access::standard(),
            memory_policy: MemoryPolicy::default(),
            fast_memory: None,
            memory_bytes: None,
            cpus: None,
            stdio: None,
            notes: Vec::new(),
            options: RunOptions::default(),
        }
    }
}

/// Returns the bytes of memory of a machine, all nodes together.
#[must_use]
pub fn machine_memory(spec: &Spec) -> u64 {
    spec.tables.memory_bytes()
}
