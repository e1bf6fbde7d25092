//! The sector cache, for programs that do not set it up themselves.

use fxscope_machine::Spec;
use serde::{Deserialize, Serialize};

use crate::sector_blocks::WHAT;
use crate::{Error, SectorBlocks, SectorData};

/// Ways of a cache's sectors, or data assigned to a sector.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum SectorOption {
    /// Ways of sector 1, where sector 0 gets the rest, or of all sectors.
    Ways(CacheLevel, Vec<u64>),
    /// Data that belong to a sector whatever their pointers say.
    Data(SectorData),
    /// Heap blocks that belong to a sector whatever their pointers say.
    Blocks(SectorBlocks),
}

/// A cache with sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum CacheLevel {
    /// The L1 data cache: four sectors.
    L1,
    /// The L2 cache: two sectors.
    L2,
}

impl SectorOption {
    /// Parses `L1=WAYS`, `L2=WAYS` or `assign=DATA`.
    ///
    /// # Errors
    /// If the text is malformed; the message says how to write it.
    pub fn parse(text: &str) -> Result<SectorOption, String> {
        const HOW: &str = "write L1=WAYS, L2=WAYS or assign=DATA, such as L2=10,assign=b";
        let (key, value) = text.split_once('=').ok_or(HOW)?;
        if let Some(sector) = key.strip_prefix("assign") {
            let number = if sector.is_empty() { Ok(1) } else { sector.parse() };
            let sector = number
                .ok()
                .filter(|sector| *sector < 4)
                .ok_or_else(|| format!("unknown sector '{sector}'; sectors are 0 to 3"))?;
            return match value.strip_prefix(WHAT).and_then(|rest| rest.strip_prefix('@')) {
                Some(calls) => SectorBlocks::parse(calls, sector).map(SectorOption::Blocks),
                None => SectorData::parse(value, sector).map(SectorOption::Data),
            };
        }
        let level = [CacheLevel::L1, CacheLevel::L2].into_iter().find(|level| level.name() == key).ok_or(HOW)?;
        let ways = value.split(':').map(str::parse).collect::<Result<Vec<u64>, _>>().unwrap_or_default();
        let sectors = level.sectors();
        if ways.len() != 1 && ways.len() != sectors {
            return Err(format!(
                "'{value}' is not a number of ways; give those of sector 1, or of {sectors} sectors as N0:N1…"
            ));
        }
        Ok(SectorOption::Ways(level, ways))
    }

    /// Returns whether `options` limit ways, so that [`SectorOption::settings`] needs the machine.
    pub(crate) fn limits_ways(options: &[SectorOption]) -> bool {
        options.iter().any(|option| matches!(option, SectorOption::Ways(..)))
    }

    /// Returns the settings of the machine for the ways in `options`, for a program that may run on the CPUs of `cmgs`.
    pub(crate) fn settings(
        options: &[SectorOption],
        spec: &Spec,
        cmgs: &[u32],
    ) -> Result<Vec<(String, String)>, Error> {
        check_enabled(options, spec)?;
        let ways = options.iter().filter_map(|option| match option {
            SectorOption::Ways(level, ways) => Some((level, ways)),
            SectorOption::Data(_) | SectorOption::Blocks(_) => None,
        });
        ways.map(|(level, ways)| Ok((level.key().to_owned(), format!("{:?}", level.all(ways, spec, cmgs)?)))).collect()
    }

    /// Returns the data that `options` assign to sectors.
    pub(crate) fn data(options: &[SectorOption], spec: &Spec) -> Result<Vec<SectorData>, Error> {
        check_enabled(options, spec)?;
        let data = options.iter().filter_map(|option| match option {
            SectorOption::Data(data) => Some(data.clone()),
            SectorOption::Ways(..) | SectorOption::Blocks(_) => None,
        });
        Ok(data.collect())
    }

    /// Returns the heap blocks that `options` assign to sectors.
    pub(crate) fn blocks(options: &[SectorOption]) -> Vec<SectorBlocks> {
        let blocks = options.iter().filter_map(|option| match option {
            SectorOption::Blocks(blocks) => Some(blocks.clone()),
            SectorOption::Ways(..) | SectorOption::Data(_) => None,
        });
        blocks.collect()
    }
}

fn check_enabled(options: &[SectorOption], spec: &Spec) -> Result<(), Error> {
    if options.is_empty() || spec.sector_cache.enabled {
        return Ok(());
    }
    Err(Error::option("sector", "the sector cache is off (sector_cache.enabled is false); remove one of the two"))
}

impl CacheLevel {
    fn name(self) -> &'static str {
        match self {
            CacheLevel::L1 => "L1",
            CacheLevel::L2 => "L2",
        }
    }

    /// Number of sectors with separate ways.
    fn sectors(self) -> usize {
        match self {
            CacheLevel::L1 => 4,
            CacheLevel::L2 => 2,
        }
    }

    /// Returns the key of the machine's description for the ways of all sectors.
    fn key(self) -> &'static str {
        match self {
            CacheLevel::L1 => "sector_cache.l1_ways",
            CacheLevel::L2 => "sector_cache.l2_ways",
        }
    }

    /// Returns its ways.
    fn ways(self, spec: &Spec) -> u32 {
        match self {
            CacheLevel::L1 => spec.l1d.ways,
            CacheLevel::L2 => spec.l2.ways,
        }
    }

    /// Returns the ways that programs on a CMG can use.
    fn usable_ways(self, spec: &Spec, cmg: u32) -> u32 {
        match self {
            CacheLevel::L1 => spec.l1d.ways - spec.l1d.reserved_ways,
            CacheLevel::L2 => spec.l2_ways(cmg),
        }
    }

    /// Returns the ways of all sectors.
    fn all(self, given: &[u64], spec: &Spec, cmgs: &[u32]) -> Result<Vec<u64>, Error> {
        let usable = |cmg: u32| self.usable_ways(spec, cmg);
        let least = cmgs.iter().copied().min_by_key(|&cmg| usable(cmg)).unwrap_or_default();
        let most = u64::from(usable(least));
        if let Some(asked) = given.iter().find(|&&asked| asked > most) {
            return Err(self.too_many(*asked, most, spec, least));
        }
        let &[one] = given else { return Ok(given.to_vec()) };
        let mut all = vec![0; self.sectors()];
        (all[0], all[1]) = (most - one, one);
        Ok(all)
    }

    fn too_many(self, asked: u64, most: u64, spec: &Spec, cmg: u32) -> Error {
        let (name, ways) = (self.name(), u64::from(self.ways(spec)));
        let why = format!("a sector can have 0 to {most} ways of {name}");
        let why = match ways - most {
            0 => why,
            kept => format!("{why}: it has {ways}, of which {kept} are reserved for the assistant core of CMG{cmg}"),
        };
        Error::option(format!("sector {name}={asked}"), why)
    }
}
