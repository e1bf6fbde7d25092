//! SVE gather loads, scatter stores and prefetches.

use crate::table::Encoding;

/// Encodings of this group.
pub const TABLE: &[Encoding] = &[];
