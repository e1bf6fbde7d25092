//! Scalar floating point.

use crate::table::Encoding;

/// Encodings of this group.
pub const TABLE: &[Encoding] = &[];
