//! SVE floating-point compares, conversions, reductions and estimates.

use crate::table::Encoding;

/// Encodings of this group.
pub const TABLE: &[Encoding] = &[];
