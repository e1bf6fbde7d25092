//! Calls of a program, as options name them.

use std::ops::Range;
use std::path::Path;

use addr2line::Loader;
use fxscope_linux::Symbols;
use fxscope_linux::elf::{Image, Role};
use fxscope_machine::settings::integer;
use serde::{Deserialize, Serialize};

use crate::MAX_PROGRAM_BYTES;

/// Calls in a part of a program.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum Calls {
    At(u64),
    In { function: String, offset: Option<u64> },
    OnLine { file: String, line: u32 },
}

/// Says how to name calls of `what`, which stands in front of the names.
fn how(what: &str) -> String {
    format!("write {what}@FUNCTION, {what}@FUNCTION+OFFSET, {what}@FILE:LINE or {what}@0xADDRESS")
}

impl Calls {
    /// Parses which calls are meant: those in a function, the one at an offset in it, those on a source line (the file's name, or the end
    /// of its path), or the one at an address. Messages name them as calls of `what`.
    ///
    /// # Errors
    /// If the text is malformed; the message says how to write it.
    pub(crate) fn parse(text: &str, what: &str) -> Result<Calls, String> {
        let number = |text: &str| integer(text).ok_or_else(|| format!("'{text}' is not a number; {}", how(what)));
        let calls = match (text.rsplit_once(':'), text.rsplit_once('+')) {
            _ if text.starts_with(|c: char| c.is_ascii_digit()) => Calls::At(number(text)?),
            (Some((file, line)), _) => {
                let line = line.parse().map_err(|_| format!("'{line}' is not a line number; {}", how(what)))?;
                Calls::OnLine { file: file.to_owned(), line }
            }
            (None, Some((function, offset))) => {
                Calls::In { function: function.to_owned(), offset: Some(number(offset)?) }
            }
            (None, None) => Calls::In { function: text.to_owned(), offset: None },
        };
        match &calls {
            Calls::In { function: name, .. } | Calls::OnLine { file: name, .. } if name.is_empty() => {
                Err(format!("'{text}' names no call; {}", how(what)))
            }
            _ => Ok(calls),
        }
    }

    /// Returns the addresses of the calls in a program, whose file is at `path` and which is loaded with these symbols.
    ///
    /// # Errors
    /// If there are none; the message lists those that exist.
    pub(crate) fn find(&self, path: &Path, symbols: &Symbols, what: &str) -> Result<Vec<Range<u64>>, String> {
        Ok(match self {
            Calls::At(address) => {
                let instruction = *address..address + 4;
                vec![instruction]
            }
            Calls::In { function, offset } => in_function(function, *offset, symbols, what)?,
            Calls::OnLine { file, line } => on_line(file, *line, path, what)?,
        })
    }
}

fn in_function(function: &str, offset: Option<u64>, symbols: &Symbols, what: &str) -> Result<Vec<Range<u64>>, String> {
    let starts = symbols.functions().filter(|(name, _)| *name == function).map(|(_, start)| start);
    let places: Vec<(u64, u64)> = starts.filter_map(|start| Some((start, symbols.at(start)?.bytes))).collect();
    if places.is_empty() {
        let why = if symbols.is_empty() { "it has no symbols; give the call's address".to_owned() } else { how(what) };
        return Err(format!("the program has no function {function}: {why}"));
    }
    let range = |(start, bytes): (u64, u64)| match offset {
        None => Ok(start..start + bytes),
        Some(offset) if offset < bytes => Ok(start + offset..start + offset + 4),
        Some(offset) => Err(format!("{function}+{offset:#x} is not within {function}, which has {bytes} bytes")),
    };
    places.into_iter().map(range).collect()
}

/// Returns the code of a source line.
fn on_line(file: &str, line: u32, path: &Path, what: &str) -> Result<Vec<Range<u64>>, String> {
    let unreadable = |e: &dyn std::fmt::Display| format!("the lines of {} cannot be read: {e}", path.display());
    let content = fxscope_host::read(path, MAX_PROGRAM_BYTES).map_err(|e| unreadable(&e.why))?;
    let image = Image::parse_as(&content, Role::Program).map_err(|e| unreadable(&e))?;
    let lines = Loader::new(path).map_err(|e| unreadable(&e))?;
    let all = lines.find_location_range(0, u64::MAX).map_err(|e| unreadable(&e))?;
    let (mut found, mut any) = (Vec::new(), false);
    for (start, bytes, location) in all {
        any = true;
        let named = location.file.is_some_and(|name| Path::new(name).ends_with(file));
        if named && location.line == Some(line) {
            let start = start + image.bias();
            found.push(start..start + bytes);
        }
    }
    match (found.is_empty(), any) {
        (false, _) => Ok(found),
        (true, true) => Err(format!("the program has no code for line {line} of {file}; {}", how(what))),
        (true, false) => Err(format!(
            "the program has no debug information, so that line {line} of {file} is not known: build it with -g, or name the \
             function"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Calls, String> {
        Calls::parse(text, "mmap")
    }

    #[test]
    fn calls_are_named_by_function_offset_line_or_address() {
        let function = |offset| Calls::In { function: "init".to_owned(), offset };
        assert_eq!(parse("init"), Ok(function(None)));
        assert_eq!(parse("init+0x1c"), Ok(function(Some(0x1c))));
        assert_eq!(parse("src/heat.c:42"), Ok(Calls::OnLine { file: "src/heat.c".to_owned(), line: 42 }));
        assert_eq!(parse("0x400abc"), Ok(Calls::At(0x40_0abc)));
    }

    #[test]
    fn what_names_no_call_is_told_with_how_to_name_one() {
        for text in ["", ":3", "+8", "heat.c:x", "init+x", "0xz"] {
            assert!(parse(text).is_err_and(|message| message.contains("mmap@FILE:LINE")), "{text}");
        }
    }
}
