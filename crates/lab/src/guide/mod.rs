//! Experiments of the tuning guide and of studies, each with the source's table: published, simulated, difference.
//!
//! `data/guide` has the experiments, a file for each chapter ([`Chapter`]). A cell of a table names a measured row of
//! `validation`, or has a run of its own if nothing was published for it. [`run`] makes the runs of chosen experiments and
//! returns [`Outcome`]s, which become text, JSON and pages ([`show`]). [`items`] is the list of what the sources state, with the
//! experiments that cover it.

mod commands;
mod data;
mod items;
mod laboratory;
mod outcome;
mod runs;
mod show;
mod site;
mod summary;

pub use commands::commands;
pub use data::{Chapter, Column, Experiment, Guide, Laboratory, Needs, Table};
pub use items::{Item, LeftOut, Status, items, items_markdown, left_out};
pub use outcome::{Cell, Outcome, Shown};
pub use runs::{Settings, run};
pub use show::list;
pub use site::site;
pub use summary::{Summary, answer, documents};
