//! AdvSIMD floating point, vector and scalar forms.

use crate::table::Encoding;

/// Encodings of this group.
pub const TABLE: &[Encoding] = &[];
