//! Snapshots of `fxscope_sim` in a folder of `fxscope_checkpoint`.

use std::io::{self, Write};

use fxscope_checkpoint::{PageKey, Reader, Snapshot};
use fxscope_sim::snapshot::{PageId, SnapshotSink, SnapshotSource};

/// A snapshot that is being taken.
pub(super) struct Taken<'s, 'w>(pub &'s mut Snapshot<'w>);

impl Write for Taken<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SnapshotSink for Taken<'_, '_> {
    fn page(&mut self, PageId { object, index }: PageId, bytes: &[u8]) -> io::Result<()> {
        self.0.page(PageKey { object, index }, bytes)
    }
}

/// A snapshot that is being read.
pub(super) struct Stored<'r>(pub &'r Reader);

impl SnapshotSource for Stored<'_> {
    fn state(&mut self) -> io::Result<Vec<u8>> {
        self.0.state()
    }

    fn pages(&mut self, take: &mut dyn FnMut(PageId, &[u8]) -> io::Result<()>) -> io::Result<()> {
        self.0.pages(&mut |PageKey { object, index }, bytes| take(PageId { object, index }, bytes))
    }
}
