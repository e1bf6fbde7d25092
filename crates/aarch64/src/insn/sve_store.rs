//! SVE contiguous and structure stores.

use crate::table::Encoding;

/// Encodings of this group.
pub const TABLE: &[Encoding] = &[];
