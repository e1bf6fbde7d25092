//! Page sizes of mappings by the calls that make them, as options name them.

use std::path::Path;

use fxscope_linux::Symbols;
use fxscope_linux::pages::{MappingPages, SitePages};
use serde::{Deserialize, Serialize};

use crate::call_sites::Calls;

/// How calls are named in front of their place.
pub(crate) const WHAT: &str = "mmap";

/// Pages for the mappings that calls of the program make.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct CallPages {
    /// The user's name for the calls.
    pub text: String,
    calls: Calls,
    /// The pages.
    pub pages: MappingPages,
}

impl CallPages {
    /// Parses which calls are meant: those in a function, the one at an offset in it, those on a source line (the
    /// file's name, or the end of its path), or the one at an address.
    ///
    /// # Errors
    /// If the text is malformed; the message says how to write it.
    pub fn parse(text: &str, pages: MappingPages) -> Result<CallPages, String> {
        Ok(CallPages { text: text.to_owned(), calls: Calls::parse(text, WHAT)?, pages })
    }

    /// Returns the addresses of the calls in a program, whose file is at `path` and which is loaded with these symbols.
    ///
    /// # Errors
    /// If there are none; the message lists those that exist.
    pub(crate) fn find(&self, path: &Path, symbols: &Symbols) -> Result<Vec<SitePages>, String> {
        let rule = |calls| SitePages { calls, pages: self.pages };
        Ok(self.calls.find(path, symbols, WHAT)?.into_iter().map(rule).collect())
    }
}
