//! Loads and stores of general and SIMD&FP registers (scalar addressing).

use crate::table::Encoding;

/// Encodings of this group.
pub const TABLE: &[Encoding] = &[];
