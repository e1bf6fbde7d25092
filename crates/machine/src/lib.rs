//! Machine descriptions: their types, their loader, their checks.
//!
//! A machine is a folder: `machine.toml` (tables of parameters, each with its source and its evidence), `instructions.csv` (what each timing class costs), `pmu.csv` (the events of its PMU) and `groups.csv` (which of
//! them are counted together). Nothing else in the program holds a number of the machine. A machine may extend another
//! and say only what differs.
//!
//! * [`spec`]: the tables, each key with its meaning and limits. [`schema`]: what the others know of them.
//! * [`mod@load`]: from names and paths to a [`Spec`]; with [`layer`] for one `machine.toml`, [`settings`] for
//!   changes from the command line, [`rows`] and [`notation`] for `instructions.csv`, [`recipe`] for what a row says,
//!   [`mod@pmu`] with [`events`] and [`groups`] for `pmu.csv` and `groups.csv`.
//! * [`evidence`]: where each value comes from and how well it is known.
//! * [`mod@check`]: limits and relations of values. [`mod@show`]: a resolved machine as text and as a hash.
//! * [`mod@modes`]: the mode of power, which replaces the clock and the pipes in use.
//! * [`paging`]: the translation tables of pages of a size.
//! * [`error`]: what can go wrong, and how it is said.

pub mod check;
pub mod error;
pub mod events;
pub mod evidence;
pub mod groups;
pub mod layer;
pub mod load;
pub mod modes;
pub mod notation;
pub mod paging;
pub mod pmu;
pub mod recipe;
pub mod rows;
pub mod schema;
pub mod settings;
pub mod show;
pub mod spec;
mod table;

pub use check::Violation;
pub use error::LoadError;
pub use events::{Event, Events, Scope};
pub use evidence::{Evidence, Provenance, check_evidence, evidence_summary, row_summary, show_assumed, show_sound};
pub use groups::{Group, Groups};
pub use load::{list, load, load_bytes, names};
pub use pmu::Pmu;
pub use recipe::{Blocking, Dependence, Flow, LoadToUse, Pipes, Recipe, Recipes, Uop};
pub use show::{hash, show, show_events, show_list};
pub use spec::{Spec, Tables};
