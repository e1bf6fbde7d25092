//! SVE contiguous, broadcast, first-fault and structure loads.

use crate::table::Encoding;

/// Encodings of this group.
pub const TABLE: &[Encoding] = &[];
