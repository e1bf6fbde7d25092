//! Page sizes: the best for a program, published experiments, accesses that no page size helps, and pages and page walks of a Linux host.

pub mod advise;
pub mod check;
pub mod experiment;
pub mod host;
pub mod plan;
pub mod risks;
pub mod walks;

pub use advise::advise;
pub use check::check;
pub use risks::risks;
