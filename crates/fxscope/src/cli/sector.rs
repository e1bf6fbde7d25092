//! `--sector`: the sector cache, for programs that do not set it up themselves.

use fxscope::SectorData;
use fxscope::machine::Spec;

use super::Failure;

/// Ways and data of sectors.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Sectors {
    /// Sector cache: ways of sector 1, and data that belong to it, such as L2=10,assign=b. L1=N and L2=N give sector 0 the
    /// rest; L1=N0:N1:N2:N3 and L2=N0:N1 give each sector its own. assign=NAME, NAME+OFFSET:BYTES or 0xADDRESS:BYTES
    /// put data of the program into sector 1 (assign2=… into sector 2), whatever its pointers say.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = parse)]
    sector: Vec<Item>,
}

#[derive(Clone, Debug)]
enum Item {
    Ways(&'static Level, Vec<u64>),
    Data(SectorData),
}

/// A cache with sectors.
struct Level {
    name: &'static str,
    /// Number of sectors that have ways of their own.
    sectors: usize,
    /// The key of the machine's description with their ways.
    key: &'static str,
    /// Its ways, and those of them that programs on a CMG can use.
    ways: fn(&Spec) -> u32,
    usable: fn(&Spec, u32) -> u32,
}

impl std::fmt::Debug for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

static LEVELS: [Level; 2] = [
    Level {
        name: "L1",
        sectors: 4,
        key: "sector_cache.l1_ways",
        ways: |spec| spec.l1d.ways,
        usable: |spec, _| spec.l1d.ways - spec.l1d.reserved_ways,
    },
    Level {
        name: "L2",
        sectors: 2,
        key: "sector_cache.l2_ways",
        ways: |spec| spec.l2.ways,
        usable: |spec, cmg| spec.l2_ways(cmg),
    },
];

fn parse(text: &str) -> Result<Item, String> {
    const HOW: &str = "write L1=WAYS, L2=WAYS or assign=DATA, such as L2=10,assign=b";
    let (key, value) = text.split_once('=').ok_or(HOW)?;
    if let Some(sector) = key.strip_prefix("assign") {
        let number = if sector.is_empty() { Ok(1) } else { sector.parse() };
        let sector = number
            .ok()
            .filter(|sector| *sector < 4)
            .ok_or_else(|| format!("there is no sector '{sector}'; sectors are 0 to 3"))?;
        return Ok(Item::Data(SectorData::parse(value, sector)?));
    }
    let level = LEVELS.iter().find(|level| level.name == key).ok_or(HOW)?;
    let ways = value.split(':').map(str::parse).collect::<Result<Vec<u64>, _>>().unwrap_or_default();
    if ways.len() != 1 && ways.len() != level.sectors {
        return Err(format!(
            "'{value}' are no ways; give those of sector 1, or of {} sectors as N0:N1…",
            level.sectors
        ));
    }
    Ok(Item::Ways(level, ways))
}

impl Sectors {
    /// Whether ways are given, which [`Sectors::settings`] needs the machine for.
    pub(super) fn limits(&self) -> bool {
        self.sector.iter().any(|item| matches!(item, Item::Ways(..)))
    }

    /// The settings of the machine that the options are short for, when the program may run on the CPUs of `cmgs`.
    pub(super) fn settings(&self, spec: &Spec, cmgs: &[u32]) -> Result<Vec<(String, String)>, Failure> {
        self.check_enabled(spec)?;
        let ways = self.sector.iter().filter_map(|item| match item {
            Item::Ways(level, ways) => Some((level, ways)),
            Item::Data(_) => None,
        });
        ways.map(|(level, ways)| Ok((level.key.to_owned(), format!("{:?}", level.all(ways, spec, cmgs)?)))).collect()
    }

    fn check_enabled(&self, spec: &Spec) -> Result<(), Failure> {
        if self.sector.is_empty() || spec.sector_cache.enabled {
            return Ok(());
        }
        Err("--sector: the sector cache is off (sector_cache.enabled is false); take back one of the two".into())
    }

    /// The data that are given sectors.
    pub(super) fn data(&self, spec: &Spec) -> Result<Vec<SectorData>, Failure> {
        self.check_enabled(spec)?;
        Ok(self
            .sector
            .iter()
            .filter_map(|item| if let Item::Data(data) = item { Some(data.clone()) } else { None })
            .collect())
    }
}

impl Level {
    /// The ways of all sectors.
    fn all(&self, given: &[u64], spec: &Spec, cmgs: &[u32]) -> Result<Vec<u64>, Failure> {
        let usable = |cmg: u32| (self.usable)(spec, cmg);
        let least = cmgs.iter().copied().min_by_key(|&cmg| usable(cmg)).unwrap_or_default();
        let most = u64::from(usable(least));
        if let Some(asked) = given.iter().find(|&&asked| asked > most) {
            return Err(self.too_many(*asked, most, spec, least).into());
        }
        let &[one] = given else { return Ok(given.to_vec()) };
        let mut all = vec![0; self.sectors];
        (all[0], all[1]) = (most - one, one);
        Ok(all)
    }

    fn too_many(&self, asked: u64, most: u64, spec: &Spec, cmg: u32) -> String {
        let (name, ways) = (self.name, u64::from((self.ways)(spec)));
        let message = format!("--sector {name}={asked}: a sector can have 0 to {most} ways of {name}");
        match ways - most {
            0 => message,
            kept => format!("{message}: it has {ways}, of which {kept} are kept for the assistant core of CMG{cmg}"),
        }
    }
}
