//! A scenario that is ready to run.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use fxscope_checkpoint::Reader;
use fxscope_linux::Stdio;
use fxscope_machine::Spec;

use crate::checkpoint::Resumption;
use crate::{CallPages, Error, PlaceOption, Request, SectorBlocks, SectorData, Session};

/// A scenario with its machine loaded and its options checked.
pub struct Prepared {
    request: Request,
    sector_data: Vec<SectorData>,
    sector_blocks: Vec<SectorBlocks>,
    call_pages: Vec<CallPages>,
    places: Vec<(PlaceOption, u32)>,
}

impl Prepared {
    pub(crate) fn new(
        request: Request,
        sector_data: Vec<SectorData>,
        sector_blocks: Vec<SectorBlocks>,
        call_pages: Vec<CallPages>,
        places: Vec<(PlaceOption, u32)>,
    ) -> Prepared {
        Prepared { request, sector_data, sector_blocks, call_pages, places }
    }

    /// Returns the machine, with all settings.
    #[must_use]
    pub fn spec(&self) -> &Arc<Spec> {
        &self.request.spec
    }

    /// Returns the program's environment.
    #[must_use]
    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.request.environment
    }

    /// Sets the program's environment.
    #[must_use]
    pub fn with_environment(mut self, environment: Vec<(OsString, OsString)>) -> Prepared {
        self.request.environment = environment;
        self
    }

    /// Makes a folder one that the program may not change, wherever it may write.
    #[must_use]
    pub fn protecting(mut self, folder: &Path) -> Prepared {
        self.request.access.protected.push(folder.to_owned());
        self
    }

    /// Continues the run from a snapshot, as [`Prepared::contained`] starts it.
    ///
    /// # Errors
    /// If the snapshot is not whole, or something that the run needs is not what it was.
    pub fn resumed<R: Send>(
        mut self,
        stdio: Option<Stdio>,
        snapshot: &Reader,
        with: impl FnOnce(Session) -> R + Send,
    ) -> Result<R, Error> {
        self.request.stdio = stdio;
        Session::resumed(self.request, Resumption::new(snapshot)?, with)
    }

    /// Loads the program and passes it to `with` on a thread that can only access what the program may on the host
    /// ([`Session::contained`]). `stdio` are the program's standard streams; `None`: those of this process.
    ///
    /// # Errors
    /// If the program cannot start, or does not have the data or calls that the scenario names.
    pub fn contained<R: Send>(
        mut self,
        stdio: Option<Stdio>,
        with: impl FnOnce(Session) -> R + Send,
    ) -> Result<R, Error> {
        self.request.stdio = stdio;
        let (sector_data, sector_blocks, call_pages) = (self.sector_data, self.sector_blocks, self.call_pages);
        let places = self.places;
        let prepared = |mut session: Session| {
            session.assign_sectors(&sector_data, &sector_blocks).map_err(|why| Error::option("sector", why))?;
            session.assign_pages(&call_pages).map_err(|why| Error::option("pages", why))?;
            session.place(&places).map_err(|why| Error::option("place", why))?;
            Ok(with(session))
        };
        Session::contained(self.request, prepared)?
    }
}
