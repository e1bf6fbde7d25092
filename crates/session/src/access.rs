//! What a program may access on the host.

use std::path::PathBuf;

use fxscope_linux::Access;
use serde::{Deserialize, Serialize};

use crate::Error;

/// What a program may access on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostAccess {
    /// Only its standard streams and what the other fields allow. Otherwise it may read files anywhere, and write below
    /// the current directory and `/tmp`.
    pub sandbox: bool,
    /// Folders that it may read.
    pub read: Vec<PathBuf>,
    /// Folders that it may read and write.
    pub write: Vec<PathBuf>,
    /// Whether it may open network sockets.
    pub network: bool,
}

impl HostAccess {
    /// Gives more access.
    pub fn allow(&mut self, more: AccessOption) {
        match more {
            AccessOption::Read(folder) => self.read.push(folder),
            AccessOption::Write(folder) => self.write.push(folder),
            AccessOption::Network => self.network = true,
        }
    }

    pub(crate) fn resolve(&self) -> Result<Access, Error> {
        let mut access = if self.sandbox { Access::sandbox() } else { Access::standard() };
        if let Some(missing) = self.read.iter().chain(&self.write).find(|folder| !folder.is_dir()) {
            let why = format!("{} is not a folder; name one that exists", missing.display());
            return Err(Error::option("allow", why));
        }
        // Without the sandbox everything is readable already.
        if let Some(read) = &mut access.read {
            read.extend(self.read.iter().cloned());
        }
        access.write.extend(self.write.iter().cloned());
        access.network |= self.network;
        Ok(access)
    }
}

/// An access that an option gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessOption {
    /// To read a folder.
    Read(PathBuf),
    /// To read and write a folder.
    Write(PathBuf),
    /// To open network sockets.
    Network,
}

impl AccessOption {
    /// Parses `read=DIR`, `write=DIR` or `net`.
    ///
    /// # Errors
    /// If the text is malformed; the message says how to write it.
    pub fn parse(text: &str) -> Result<AccessOption, String> {
        match text.split_once('=') {
            Some(("read", folder)) if !folder.is_empty() => Ok(AccessOption::Read(folder.into())),
            Some(("write", folder)) if !folder.is_empty() => Ok(AccessOption::Write(folder.into())),
            None if text == "net" => Ok(AccessOption::Network),
            _ => Err("write it as read=DIR, write=DIR or net".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_folders_or_the_network() {
        let parsed = ["read=in", "write=/tmp/out", "net"].map(|text| AccessOption::parse(text).expect(text));
        let expected = [AccessOption::Read("in".into()), AccessOption::Write("/tmp/out".into()), AccessOption::Network];
        assert_eq!(parsed, expected);
        for wrong in ["read", "read=", "net=", "disk=a"] {
            assert!(AccessOption::parse(wrong).is_err(), "{wrong}");
        }
        let mut access = HostAccess::default();
        parsed.into_iter().for_each(|more| access.allow(more));
        assert!(access.network && access.read == [PathBuf::from("in")] && access.write == [PathBuf::from("/tmp/out")]);
    }
}
