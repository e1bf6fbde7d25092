//! AdvSIMD widening, narrowing and by-element integer forms.

use crate::table::Encoding;

/// Encodings of this group.
pub const TABLE: &[Encoding] = &[];
