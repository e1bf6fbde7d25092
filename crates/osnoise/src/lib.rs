//! Operating-system noise of Linux hosts: measured, stored, viewed, imported and fitted.
//!
//! A *detour* is a stretch of time in which a core did not do a program's work although the program could run.
//! [`measure`] finds detours, [`cause`] attributes them, [`trace`] stores them, [`view`] summarises them, and [`fit`]
//! fits noise models to them.

pub mod cause;
pub mod clock;
pub mod fit;
pub mod import;
pub mod kernel_counts;
pub mod measure;
pub mod trace;
pub mod view;
