//! Output formats.

pub mod csv;
pub mod json;
pub mod quantity;
pub mod terminal;
