//! Files with a version and a digest: each says what it is, and shows whether it is whole.

use sha2::{Digest as _, Sha256};

/// The version of all files of a folder.
pub const VERSION: u32 = 1;

/// What each file begins with.
const MAGIC: [u8; 12] = *b"fxscope run\n";

/// Bytes before the contents: what it is, the version, the digest of the contents.
const HEAD: usize = MAGIC.len() + 4 + 32;

/// What is wrong with a sealed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// It is of this version.
    Version(u32),
    /// It is damaged: in which way.
    Damaged(&'static str),
}

/// Returns a file with these contents.
pub(crate) fn seal(contents: &[u8]) -> Vec<u8> {
    [&MAGIC[..], &VERSION.to_le_bytes(), &Sha256::digest(contents), contents].concat()
}

/// Returns the contents of a file.
///
/// # Errors
/// When it is another kind of file, of another version, or not whole.
pub(crate) fn contents(file: &[u8]) -> Result<&[u8], Broken> {
    let rest = file.strip_prefix(&MAGIC).ok_or(Broken::Damaged("it is another kind of file"))?;
    let (version, rest) = rest.split_first_chunk().ok_or(Broken::Damaged("its beginning is missing"))?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        return Err(Broken::Version(version));
    }
    let (digest, contents) = rest.split_first_chunk::<32>().ok_or(Broken::Damaged("its beginning is missing"))?;
    debug_assert_eq!(file.len(), HEAD + contents.len());
    if *digest != <[u8; 32]>::from(Sha256::digest(contents)) {
        return Err(Broken::Damaged("its contents have changed, or a part is missing"));
    }
    Ok(contents)
}
