//! SVE integer compares, reductions, shifts and wide forms.

use crate::table::Encoding;

/// Encodings of this group.
pub const TABLE: &[Encoding] = &[];
