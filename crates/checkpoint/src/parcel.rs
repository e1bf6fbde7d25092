//! Parcels: files that one process writes for another. Each says what it is and who has written it, and shows whether it is whole.

use sha2::{Digest as _, Sha256};

use crate::sealed::{self, Broken};

/// The level of compression. Level 1 takes twice as long for an eighth less.
const LEVEL: i32 = -1;

/// What a parcel says of itself.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Label {
    /// What it holds, in a word.
    pub what: String,
    /// The program that has written it, with what decides whether another one can read it.
    pub tool: String,
    /// Its number among those of the same kind.
    pub number: u64,
    /// [`digest`] of the parcel that it answers, if it is an answer.
    pub answers: Option<[u8; 32]>,
}

/// Why a parcel cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ParcelError {
    /// Its form is another one.
    #[error("has format {0}; this program reads format {version}", version = sealed::VERSION)]
    Format(u32),
    /// It is not whole.
    #[error("is damaged: {0}")]
    Damaged(&'static str),
    /// It holds something else.
    #[error("holds {found}, not {wanted}")]
    Other {
        /// What it holds.
        found: String,
        /// What it should hold.
        wanted: String,
    },
    /// Another program has written it.
    #[error("was written by {found}, and this is {this}; use the same version everywhere")]
    Tool {
        /// What has written it.
        found: String,
        /// What reads it.
        this: String,
    },
}

/// Returns the file of a parcel with these contents, compressed.
///
/// # Errors
/// When there is not enough memory.
pub fn pack(label: &Label, contents: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut inside = postcard::to_stdvec(label).map_err(std::io::Error::other)?;
    inside.extend(zstd::bulk::compress(contents, LEVEL)?);
    Ok(sealed::seal(&inside))
}

/// Returns what the file of a parcel says, and its contents. `what` and `tool` are as its label should have them.
///
/// # Errors
/// When it is not whole, holds something else, or another program has written it.
pub fn unpack(file: &[u8], what: &str, tool: &str) -> Result<(Label, Vec<u8>), ParcelError> {
    let inside = sealed::contents(file).map_err(|broken| match broken {
        Broken::Version(version) => ParcelError::Format(version),
        Broken::Damaged(why) => ParcelError::Damaged(why),
    })?;
    let unreadable = ParcelError::Damaged("it cannot be read");
    let Ok((label, compressed)) = postcard::take_from_bytes::<Label>(inside) else { return Err(unreadable) };
    if label.what != what {
        return Err(ParcelError::Other { found: label.what, wanted: what.to_owned() });
    }
    if label.tool != tool {
        return Err(ParcelError::Tool { found: label.tool, this: tool.to_owned() });
    }
    match zstd::stream::decode_all(compressed) {
        Ok(contents) => Ok((label, contents)),
        Err(_) => Err(unreadable),
    }
}

/// Returns what identifies the file of a parcel.
#[must_use]
pub fn digest(file: &[u8]) -> [u8; 32] {
    Sha256::digest(file).into()
}
