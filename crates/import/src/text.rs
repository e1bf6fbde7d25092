//! The text of files: UTF-8, UTF-16 as spreadsheets write it, or Shift-JIS and Windows-1252 in names and separators.

use std::borrow::Cow;

use encoding_rs::{Encoding, SHIFT_JIS, UTF_8, WINDOWS_1252};

/// Text, and the encoding that was assumed for it; `None` for Unicode.
pub(crate) struct Text<'a> {
    pub text: Cow<'a, str>,
    pub assumed: Option<&'static Encoding>,
}

/// Decodes bytes. Without a byte order mark they are UTF-8 if they are valid UTF-8, otherwise Shift-JIS if they are
/// valid Shift-JIS, otherwise Windows-1252.
pub(crate) fn decode(bytes: &[u8]) -> Text<'_> {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        let (text, _) = encoding.decode_without_bom_handling(&bytes[mark..]);
        return Text { text, assumed: None };
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Text { text: Cow::Borrowed(text), assumed: None };
    }
    match SHIFT_JIS.decode_without_bom_handling_and_without_replacement(bytes) {
        Some(text) => Text { text, assumed: Some(SHIFT_JIS) },
        None => Text { text: WINDOWS_1252.decode_without_bom_handling(bytes).0, assumed: Some(WINDOWS_1252) },
    }
}

/// Returns bytes without a byte order mark; UTF-16 becomes UTF-8.
pub(crate) fn unmarked(bytes: &[u8]) -> Cow<'_, [u8]> {
    match Encoding::for_bom(bytes) {
        None => Cow::Borrowed(bytes),
        Some((encoding, mark)) if encoding == UTF_8 => Cow::Borrowed(&bytes[mark..]),
        Some(_) => Cow::Owned(decode(bytes).text.into_owned().into_bytes()),
    }
}

impl Text<'_> {
    /// Returns a note about the assumed encoding.
    pub(crate) fn note(&self) -> Option<String> {
        self.assumed.map(|encoding| format!("the file is no UTF-8; its names are read as {}", encoding.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_in_every_encoding_reads_alike() {
        let text = "計算,2\n";
        let shift_jis = SHIFT_JIS.encode(text).0;
        let utf_16: Vec<u8> =
            [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(|unit| unit.to_le_bytes())).collect();
        let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
        for bytes in [text.as_bytes(), &shift_jis, &utf_16, &marked] {
            assert_eq!(decode(bytes).text, text);
        }
        assert_eq!(decode(&shift_jis).note().as_deref(), Some("the file is no UTF-8; its names are read as Shift_JIS"));
        assert_eq!(decode(b"2\xa0000").text, "2\u{a0}000");
        assert_eq!(decode(b"").text, "");
    }
}
