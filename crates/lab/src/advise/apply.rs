//! Options of `fxscope run`, as the table of remedies has them, applied to a scenario.

use fxscope_linux::hwpfctl::{self, Call};
use fxscope_machine::settings::integer;
use fxscope_session::{PageOption, Scenario, SectorOption};

/// The variable for the number of an OpenMP program's threads.
pub(super) const THREADS: &str = "OMP_NUM_THREADS";

/// Returns the scenario with options, option and argument in turn; `None` if the scenario has chosen one of these settings already.
/// The number of threads and their CPUs are always taken: remedies start from the ones that a program has.
///
/// # Errors
/// If an option is unknown or its argument is malformed.
pub(super) fn applied(scenario: &Scenario, options: &[String]) -> Result<Option<Scenario>, String> {
    let mut changed = scenario.clone();
    let mut prefetch: Vec<&str> = Vec::new();
    for pair in options.chunks(2) {
        let [option, argument] = pair else { return Err(format!("{} has no argument", pair.concat())) };
        let is_free = match option.as_str() {
            "-e" => variable(scenario, &mut changed, argument)?,
            "--hwpf" => {
                prefetch.extend(argument.split(' '));
                scenario.options.stream_detect == 0
            }
            "--pages" => pages(scenario, &mut changed, argument)?,
            "--interleave" => {
                changed.placement.interleave = Some(argument.clone());
                !scenario.placement.places_memory()
            }
            "--membind" => {
                changed.placement.membind = Some(argument.clone());
                !scenario.placement.places_memory()
            }
            "--cpus" => {
                changed.placement.cpus = Some(argument.clone());
                scenario.placement.cpus.as_ref() != Some(argument)
            }
            "--sector" => sectors(scenario, &mut changed, argument)?,
            "--vector-bits" => setting(scenario, &mut changed, ("clock.vector_bits", argument)),
            "--power-mode" => setting(scenario, &mut changed, ("power.mode", argument)),
            _ => return Err(format!("{option} is not an option that remedies have")),
        };
        if !is_free {
            return Ok(None);
        }
    }
    if !prefetch.is_empty() {
        changed.options.stream_detect = stream_detect(&prefetch)?;
    }
    Ok(Some(changed))
}

/// Adds a variable.
fn variable(scenario: &Scenario, changed: &mut Scenario, argument: &str) -> Result<bool, String> {
    let (name, value) = argument.split_once('=').ok_or_else(|| format!("-e {argument}: write it as VAR=VALUE"))?;
    let known = scenario.variables.iter().rev().find(|(known, _)| known == name);
    let is_free = known.is_none_or(|(_, known)| name == THREADS && known != value);
    changed.variables.push((name.into(), value.into()));
    Ok(is_free)
}

/// Sets a key of the machine.
fn setting(scenario: &Scenario, changed: &mut Scenario, (key, value): (&str, &str)) -> bool {
    changed.settings.push((key.to_owned(), value.to_owned()));
    scenario.settings.iter().all(|(known, _)| known != key)
}

/// Sets page sizes of segments.
fn pages(scenario: &Scenario, changed: &mut Scenario, argument: &str) -> Result<bool, String> {
    for option in argument.split(',') {
        changed.placement.pages.push(PageOption::parse(option)?);
    }
    let is_chosen = !scenario.placement.pages.is_empty()
        || scenario.overrides.iter().chain(&scenario.settings).any(|(key, _)| key.starts_with("pages."));
    Ok(!is_chosen)
}

/// Sets ways of sectors and assigns data to them.
fn sectors(scenario: &Scenario, changed: &mut Scenario, argument: &str) -> Result<bool, String> {
    for option in argument.split(',') {
        changed.sectors.push(SectorOption::parse(option)?);
    }
    Ok(scenario.sectors.is_empty())
}

/// Returns the register for options of `hwpfctl`.
fn stream_detect(options: &[&str]) -> Result<u64, String> {
    let words: Vec<Vec<u8>> = options.iter().map(|word| word.as_bytes().to_vec()).collect();
    match hwpfctl::parse(&words)? {
        Call::Set(settings, _) => Ok(settings.stream_detect.into()),
        Call::Help => Err("--help sets nothing".to_owned()),
    }
}

/// Parses a number of threads.
pub(super) fn count(text: &str) -> Option<u32> {
    integer(text).and_then(|count| u32::try_from(count).ok()).filter(|&count| count > 0)
}

#[cfg(test)]
mod tests {
    use fxscope_pmu::Metrics;

    use super::*;

    fn words(text: &[&str]) -> Vec<String> {
        text.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn each_remedy_changes_a_plain_scenario_and_leaves_what_is_chosen() {
        let scenario = Scenario::new("a.out");
        for remedy in Metrics::built_in().remedies() {
            // A value that fits all kinds of options.
            let value = match remedy.options.first().map(String::as_str) {
                Some("--pages") => "2MiB",
                Some("--sector") => "L2=4,assign=b",
                Some("--vector-bits") => "256",
                _ => "4",
            };
            let options = remedy.with_value(value).options;
            if options.is_empty() {
                continue;
            }
            let changed = applied(&scenario, &options).expect(&remedy.name).expect(&remedy.name);
            assert_ne!(changed, scenario, "{}", remedy.name);
            assert_eq!(applied(&changed, &options), Ok(None), "{}", remedy.name);
        }
    }

    #[test]
    fn settings_of_both_levels_of_prefetch_are_combined() {
        let both = applied(&Scenario::new("a.out"), &words(&["--hwpf", "--distL1 3", "--hwpf", "--distL2 20"]));
        let one = applied(&Scenario::new("a.out"), &words(&["--hwpf", "--distL1 3 --distL2 20"]));
        assert_eq!(both, one);
    }

    #[test]
    fn other_numbers_of_threads_can_be_tried() {
        let twelve = Scenario::new("a.out").with_variables(&[(THREADS, "12")]);
        let six = applied(&twelve, &words(&["-e", "OMP_NUM_THREADS=6"])).expect("valid");
        assert!(six.is_some() && applied(&twelve, &words(&["-e", "OMP_NUM_THREADS=12"])) == Ok(None));
        assert!(applied(&twelve, &words(&["--volume", "11"])).is_err());
    }
}
