//! Exclusives, acquire/release, and LSE atomics.

use crate::table::Encoding;

/// Encodings of this group.
pub const TABLE: &[Encoding] = &[];
