//! A snapshot in memory.

use std::io::{self, Write};

use fxscope_linux::{PageId, SnapshotSink, SnapshotSource};

/// What was passed on of a snapshot.
#[derive(Clone, Default)]
pub struct Kept {
    pub state: Vec<u8>,
    pub pages: Vec<(PageId, Vec<u8>)>,
}

impl Kept {
    /// As bytes, for another process.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = (self.state.len() as u64).to_le_bytes().to_vec();
        bytes.extend(&self.state);
        for (PageId { object, index }, page) in &self.pages {
            bytes.extend([u64::from(*object), *index, page.len() as u64].map(u64::to_le_bytes).concat());
            bytes.extend(page);
        }
        bytes
    }

    pub fn from_bytes(mut bytes: &[u8]) -> Kept {
        let number = |bytes: &mut &[u8]| {
            let (number, rest) = bytes.split_first_chunk().expect("a number");
            *bytes = rest;
            u64::from_le_bytes(*number)
        };
        let part = |bytes: &mut &[u8], length: u64| {
            let (part, rest) = bytes.split_at(length as usize);
            *bytes = rest;
            part.to_vec()
        };
        let length = number(&mut bytes);
        let mut kept = Kept { state: part(&mut bytes, length), pages: Vec::new() };
        while !bytes.is_empty() {
            let [object, index, length] = [(); 3].map(|()| number(&mut bytes));
            let id = PageId { object: object as u32, index };
            kept.pages.push((id, part(&mut bytes, length)));
        }
        kept
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.state.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SnapshotSink for Kept {
    fn page(&mut self, id: PageId, bytes: &[u8]) -> io::Result<()> {
        self.pages.push((id, bytes.to_vec()));
        Ok(())
    }
}

impl SnapshotSource for Kept {
    fn state(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.state.clone())
    }

    fn pages(&mut self, take: &mut dyn FnMut(PageId, &[u8]) -> io::Result<()>) -> io::Result<()> {
        self.pages.iter().try_for_each(|(id, page)| take(*id, page))
    }
}
