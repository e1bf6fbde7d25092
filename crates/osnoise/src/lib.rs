//! Noise of a Linux host: measured on its cores, kept, looked at, and fitted.
//!
//! A *detour* is a stretch of time in which a core did not do a program's work though the program could run.
//! [`measure`] finds detours, [`cause`] names them, [`trace`] keeps them.

pub mod cause;
pub mod clock;
pub mod fit;
pub mod import;
pub mod kernel_counts;
pub mod measure;
pub mod see;
pub mod trace;
