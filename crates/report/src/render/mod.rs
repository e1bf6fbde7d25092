//! Output formats.

pub mod comparison;
pub mod csv;
pub mod html;
pub mod json;
pub mod numpy;
mod palette;
pub mod quantity;
mod scale;
pub mod terminal;
pub mod xlsx;
