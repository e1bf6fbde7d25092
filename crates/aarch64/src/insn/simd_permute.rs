//! AdvSIMD copies, permutes, table look-ups and immediates.

use crate::table::Encoding;

/// Encodings of this group.
pub const TABLE: &[Encoding] = &[];
