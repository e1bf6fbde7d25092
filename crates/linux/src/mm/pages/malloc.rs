//! Emulates the `malloc` of the large-page library as far as variables of GNU's C library can.
//!
//! A program brings its own `malloc`. If its environment has one of the library's variables about `malloc`, the C library's
//! variables with the same effect are added for all of the library's behaviour, unless they are already set.

use super::library::{PREFIX, PageType, number, variable, word};

/// Size from which the library maps blocks (its default of `MALLOC_MMAP_THRESHOLD_`): 128 MiB.
const MMAP_THRESHOLD: u64 = 128 << 20;
const MIB: u64 = 1 << 20;

/// Variables of the C library: their names in the environment and in `GLIBC_TUNABLES`.
const THRESHOLD: (&str, &str) = ("MALLOC_MMAP_THRESHOLD_", "glibc.malloc.mmap_threshold");
const TRIM: (&str, &str) = ("MALLOC_TRIM_THRESHOLD_", "glibc.malloc.trim_threshold");
const ARENAS: (&str, &str) = ("MALLOC_ARENA_MAX", "glibc.malloc.arena_max");
const TOP_PAD: (&str, &str) = ("MALLOC_TOP_PAD_", "glibc.malloc.top_pad");

/// The settings of the library's `malloc` in the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Malloc {
    /// Whether memory is never released once allocated (`XOS_MMM_L_ARENA_FREE=2`).
    pub keeps_memory: bool,
    /// Whether each thread may have its own arena (`XOS_MMM_L_ARENA_LOCK_TYPE=0`).
    own_arenas: bool,
    /// Maximum number of arenas (`XOS_MMM_L_MAX_ARENA_NUM`).
    most_arenas: Option<u64>,
    /// Bytes by which a heap grows (`XOS_MMM_L_HEAP_SIZE_MB`).
    heap_bytes: Option<u64>,
    /// Whether one of its variables is set.
    is_configured: bool,
}

impl Malloc {
    /// Reads the settings from the environment; adds to `notes` what cannot be done as the library does it.
    pub(super) fn of(environment: &[Vec<u8>], notes: &mut Vec<String>) -> Malloc {
        let mut is_configured = false;
        let mut value = |name: &str| variable(environment, name).inspect(|_| is_configured = true);
        let keeps = value("ARENA_FREE").and_then(|v| word(&[("1", false), ("2", true)], "ARENA_FREE", &v, "1", notes));
        let locks = value("ARENA_LOCK_TYPE")
            .and_then(|v| word(&[("0", true), ("1", false)], "ARENA_LOCK_TYPE", &v, "1", notes));
        let own_arenas = locks.unwrap_or(false);
        let most = value("MAX_ARENA_NUM").and_then(|v| number("MAX_ARENA_NUM", &v, 1..=i32::MAX as u64, notes));
        let least = 2 * entry(environment, THRESHOLD.0).and_then(|v| v.parse().ok()).unwrap_or(MMAP_THRESHOLD);
        let heaps = least.div_ceil(MIB)..=u64::MAX / MIB;
        let heap = value("HEAP_SIZE_MB").and_then(|v| number("HEAP_SIZE_MB", &v, heaps, notes));
        for (name, given) in [("MAX_ARENA_NUM", most), ("HEAP_SIZE_MB", heap)] {
            if let Some(given) = given.filter(|_| !own_arenas) {
                notes.push(format!("{PREFIX}{name}={given} has an effect only with {PREFIX}ARENA_LOCK_TYPE=0."));
            }
        }
        if let Some(given) = value("FORCE_MMAP_THRESHOLD")
            && word(&[("0", false), ("1", true)], "FORCE_MMAP_THRESHOLD", &given, "0", notes) == Some(true)
        {
            notes.push(format!(
                "{PREFIX}FORCE_MMAP_THRESHOLD=1: GNU's malloc still searches its heap before it maps a block."
            ));
        }
        let limit = |given: Option<u64>| given.filter(|_| own_arenas);
        Malloc {
            keeps_memory: keeps.unwrap_or(false),
            own_arenas,
            most_arenas: limit(most),
            heap_bytes: limit(heap).map(|mib| mib * MIB),
            is_configured,
        }
    }

    /// Returns the C library's variables for this behaviour, with their values.
    fn variables(&self) -> Vec<((&'static str, &'static str), u64)> {
        if !self.is_configured {
            return Vec::new();
        }
        let arenas = if self.own_arenas { self.most_arenas } else { Some(1) };
        let all = [
            (THRESHOLD, Some(MMAP_THRESHOLD)),
            (TRIM, self.keeps_memory.then_some(u64::MAX)),
            (ARENAS, arenas),
            (TOP_PAD, self.heap_bytes),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// Returns what a reader of the run's results should know about the C library's variables.
    pub(super) fn notes(&self, environment: &[Vec<u8>]) -> Vec<String> {
        let (mut set, mut kept) = (Vec::new(), Vec::new());
        for (name, value) in self.variables() {
            match own(environment, name) {
                Some(own) if own != format!("{}={value}", name.0) => kept.push(format!("{own} is used, not {value}.")),
                _ => set.push(format!("{}={value}", name.0)),
            }
        }
        let set = (!set.is_empty()).then(|| {
            let set = set.join(", ");
            format!("To emulate the large-page library's malloc, GNU's C library gets {set} in the environment.")
        });
        set.into_iter().chain(kept).collect()
    }
}

/// Returns the environment for a program about to start, with the C library's variables for what it requests from the large-page
/// library. `before` is the environment of the calling program, whose own such variables are removed.
pub(crate) fn translated(environment: Vec<Vec<u8>>, before: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let inherited = entries(before);
    let mut environment: Vec<_> = environment.into_iter().filter(|entry| !inherited.contains(entry)).collect();
    for added in entries(&environment) {
        environment.push(added);
    }
    environment
}

/// Returns the entries that [`translated`] adds to an environment, or has added.
fn entries(environment: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let page_type = PageType::of(environment, &mut Vec::new());
    if !matches!(page_type, None | Some(PageType::Large)) {
        return Vec::new();
    }
    let variables = Malloc::of(environment, &mut Vec::new()).variables();
    let added = variables.into_iter().filter_map(|(name, value)| {
        let text = format!("{}={value}", name.0);
        own(environment, name).is_none_or(|own| own == text).then(|| text.into_bytes())
    });
    added.collect()
}

/// Returns the environment's own setting of a variable of the C library.
fn own(environment: &[Vec<u8>], (name, tunable): (&str, &str)) -> Option<String> {
    let tunables = entry(environment, "GLIBC_TUNABLES").filter(|t| t.split(':').any(|t| t.starts_with(tunable)));
    let tunables = tunables.map(|text| format!("GLIBC_TUNABLES={text}"));
    tunables.or_else(|| entry(environment, name).map(|value| format!("{name}={value}")))
}

/// Returns the value of an entry of the environment.
pub(super) fn entry(environment: &[Vec<u8>], name: &str) -> Option<String> {
    let value = |entry: &Vec<u8>| Some(entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_vec());
    environment.iter().find_map(value).map(|value| String::from_utf8_lossy(&value).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(entries: &[&str]) -> Vec<Vec<u8>> {
        entries.iter().map(|entry| entry.as_bytes().to_vec()).collect()
    }

    /// Returns the entries that are added to those of a program.
    fn added(environment: &[&str]) -> Vec<String> {
        let all = translated(words(environment), &[]);
        assert_eq!(all[..environment.len()], words(environment), "its own stay");
        all[environment.len()..].iter().map(|entry| String::from_utf8_lossy(entry).into_owned()).collect()
    }

    const BLOCKS: &str = "MALLOC_MMAP_THRESHOLD_=134217728";

    #[test]
    fn without_a_variable_about_malloc_the_environment_stays_as_it_is() {
        assert!(added(&["HOME=/"]).is_empty());
        assert!(added(&["XOS_MMM_L_PAGING_POLICY=demand:demand:demand", "XOS_MMM_L_COLORING=1"]).is_empty());
    }

    #[test]
    fn one_variable_enables_the_complete_emulation_with_one_arena_by_default() {
        assert_eq!(added(&["XOS_MMM_L_ARENA_FREE=1"]), [BLOCKS, "MALLOC_ARENA_MAX=1"]);
        let keeps = "MALLOC_TRIM_THRESHOLD_=18446744073709551615";
        assert_eq!(added(&["XOS_MMM_L_ARENA_FREE=2"]), [BLOCKS, keeps, "MALLOC_ARENA_MAX=1"]);
        assert_eq!(added(&["XOS_MMM_L_FORCE_MMAP_THRESHOLD=1"]), [BLOCKS, "MALLOC_ARENA_MAX=1"]);
    }

    #[test]
    fn number_and_growth_of_arenas_apply_when_each_thread_has_its_own() {
        let (speed, number, growth) =
            ("XOS_MMM_L_ARENA_LOCK_TYPE=0", "XOS_MMM_L_MAX_ARENA_NUM=3", "XOS_MMM_L_HEAP_SIZE_MB=512");
        assert_eq!(added(&[speed]), [BLOCKS]);
        assert_eq!(added(&[speed, number, growth]), [BLOCKS, "MALLOC_ARENA_MAX=3", "MALLOC_TOP_PAD_=536870912"]);
        assert_eq!(added(&[number, growth]), [BLOCKS, "MALLOC_ARENA_MAX=1"]);
    }

    #[test]
    fn the_users_own_settings_of_the_c_library_take_precedence_and_are_reported() {
        let own = ["XOS_MMM_L_ARENA_FREE=1", "MALLOC_ARENA_MAX=4", "GLIBC_TUNABLES=a=1:glibc.malloc.mmap_threshold=9"];
        assert!(added(&own).is_empty());
        let environment = words(&own);
        let notes = Malloc::of(&environment, &mut Vec::new()).notes(&environment);
        let tunables = "GLIBC_TUNABLES=a=1:glibc.malloc.mmap_threshold=9 is used, not 134217728.";
        assert_eq!(notes, [tunables, "MALLOC_ARENA_MAX=4 is used, not 1."]);
    }

    #[test]
    fn without_large_pages_malloc_is_not_emulated() {
        assert!(added(&["XOS_MMM_L_HPAGE_TYPE=none", "XOS_MMM_L_ARENA_FREE=2"]).is_empty());
    }

    #[test]
    fn variables_are_translated_again_for_a_child_program() {
        let before = translated(words(&["XOS_MMM_L_ARENA_FREE=2"]), &[]);
        let after: Vec<_> = before
            .iter()
            .map(|e| if e.starts_with(b"XOS") { b"XOS_MMM_L_ARENA_FREE=1".to_vec() } else { e.clone() })
            .collect();
        let names = words(&["XOS_MMM_L_ARENA_FREE=1", BLOCKS, "MALLOC_ARENA_MAX=1"]);
        assert_eq!(translated(after, &before), names);
        assert_eq!(translated(before.clone(), &before), before);
    }

    #[test]
    fn numbers_out_of_range_are_reported_and_have_no_effect() {
        let mut notes = Vec::new();
        let environment =
            words(&["XOS_MMM_L_ARENA_LOCK_TYPE=0", "XOS_MMM_L_MAX_ARENA_NUM=0", "XOS_MMM_L_HEAP_SIZE_MB=9"]);
        let malloc = Malloc::of(&environment, &mut notes);
        assert_eq!((malloc.most_arenas, malloc.heap_bytes), (None, None));
        assert_eq!(notes[0], "XOS_MMM_L_MAX_ARENA_NUM=0 is not a number from 1 to 2147483647; its default is used.");
        assert_eq!(
            notes[1],
            "XOS_MMM_L_HEAP_SIZE_MB=9 is not a number from 256 to 17592186044415; its default is used."
        );
    }
}
