//! Machine descriptions: their types, their loader, their checks.
//!
//! A machine is a folder: `machine.toml` (tables of parameters, each with its source and how well it is
//! known) and `instructions.csv` (what each timing class costs). Nothing else in the program holds a
//! number of the machine.

pub mod load;
pub mod notation;
pub mod recipe;
pub mod spec;

pub use load::{LoadError, load};
pub use recipe::{Blocking, Flow, Pipes, Recipe, Recipes, Uop};
pub use spec::{Evidence, Spec, Tables};
