//! `fxscope latency check`: predictions held against simulations of slower memory.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::latency::check::{self, Sample};
use fxscope::latency::methods::stalls;
use fxscope::latency::{Prediction, predict};
use fxscope::report::document::{Document, Plot};
use fxscope::report::render::{html, terminal};
use serde_json::{Value as Json, json};

use super::super::output::Target;
use super::super::scenario::{ScenarioArgs, interval_ns};
use super::super::validate::default_cache;
use super::super::{Failure, Outcome, print, say, style};
use super::trial::{Lab, NoSample, Subject};
use super::{Asked, plan, show};

/// Hold predictions against full simulation: run a program as it is and with slower memory, and predict the latter from the former.
///
/// Runs are made on all of the host's cores; their output goes nowhere, and they have no input. What they counted is kept until
/// program, options or fxscope change, so that a set that was interrupted goes on where it was. Exit status: 0 when everything could be
/// simulated, 1 when a program of a set could not.
#[derive(clap::Args)]
#[command(
    override_usage = "fxscope latency check [OPTIONS] -- PROGRAM [ARGS]...\n       fxscope latency check [OPTIONS] --plan PLAN.toml"
)]
pub struct Args {
    /// Check the programs of this file, or of several; docs/latency-lab.md says what stands in it.
    #[arg(long, value_name = "PLAN.toml", required_unless_present = "command", conflicts_with = "command")]
    plan: Vec<PathBuf>,
    /// Fit the coefficients of method 5 to the programs that the files have for it, and show them beside those in use. Nothing is
    /// changed.
    #[arg(long, requires = "plan")]
    fit: bool,
    #[command(flatten)]
    asked: Asked,
    /// Length of intervals.
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = interval_ns)]
    interval: u64,
    /// Runs at a time; all of the host's cores without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Where counts of runs are kept; a folder of the user's cache without it.
    #[arg(long, value_name = "FOLDER", conflicts_with = "no_cache")]
    cache: Option<PathBuf>,
    /// Make all runs anew and keep nothing.
    #[arg(long)]
    no_cache: bool,
    /// Write all figures as JSON to this file (- for standard output, in place of the tables).
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Write a page with plots to this file.
    #[arg(long, value_name = "FILE|-")]
    html: Option<PathBuf>,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// The program (AArch64 Linux) and its arguments.
    #[arg(last = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

/// What is shown of a check.
struct Findings {
    document: Document,
    plots: Vec<Plot>,
    json: Json,
    /// Programs that could not be simulated.
    failed: usize,
}

/// Simulates, predicts and compares.
pub(super) fn check(args: &Args) -> Outcome {
    let [json, page] = [&args.json, &args.html].map(|path| path.as_deref().map(Target::check).transpose());
    let (json, page) = (json?, page?);
    let instead = [&args.json, &args.html].into_iter().flatten().any(|path| path.as_os_str() == "-");
    let folder = args.cache.clone().or_else(|| default_cache("latency")).filter(|_| !args.no_cache);
    let lab = Lab::new(folder.as_deref(), args.jobs)?;
    let findings = match &args.plan[..] {
        [] => one(args, &lab)?,
        paths => set(args, &lab, plan::read(paths, &args.asked)?)?,
    };
    if let Some(target) = json {
        target.write(&findings.json)?;
    }
    if let Some(target) = page {
        target.write_bytes(html::experiment(&findings.document, &findings.plots).as_bytes())?;
    }
    if !instead {
        print(terminal::render(&[findings.document], style(&std::io::stdout())))?;
    }
    Ok(if findings.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn of(sample: &Sample, asked: &Asked) -> Prediction {
    predict(&sample.program(), &asked.latencies())
}

/// Checks the program that is named.
fn one(args: &Args, lab: &Lab) -> Result<Findings, Failure> {
    let words: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    let name = words.join(" ");
    let subject = Subject {
        name: name.clone(),
        fit: false,
        scenario: args.scenario.scenario(&args.command)?,
        asked: args.asked.clone(),
        interval_ns: args.interval,
        refuses: None,
    };
    let sample = lab.samples(&[subject])?.remove(0)?;
    let prediction = of(&sample, &args.asked);
    Ok(Findings {
        document: show::checked(&format!("Slower memory, predicted and simulated: {name}"), &sample, &prediction),
        plots: show::plots(&prediction, Some(&sample)),
        json: show::checked_json(&sample, &prediction),
        failed: 0,
    })
}

/// Checks a set of programs.
fn set(args: &Args, lab: &Lab, subjects: Vec<Subject>) -> Result<Findings, Failure> {
    let results = lab.samples(&subjects)?;
    let (mut failures, mut refused) = (Vec::new(), Vec::new());
    let mut samples = Vec::new();
    let mut predictions = Vec::new();
    for (subject, result) in subjects.iter().zip(results) {
        match result {
            Ok(sample) => {
                predictions.push(of(&sample, &subject.asked));
                samples.push(sample);
            }
            Err(NoSample::Failed(why)) => failures.push(format!("{}: {why}", subject.name)),
            Err(NoSample::Refused(why)) => refused.push(format!("{}: {why}", subject.name)),
        }
    }
    failures.iter().for_each(|failure| say(failure));
    let samples: Vec<&Sample> = samples.iter().collect();
    let (fitted, tested): (Vec<&Sample>, Vec<&Sample>) = samples.iter().partition(|sample| sample.fit);

    let mut sections = vec![show::programs(&samples, &predictions)];
    let all = check::statistics(&samples);
    sections.extend(show::statistics("within 10 %, all programs", &all));
    let mut json = json!({
        "programs": samples.iter().zip(&predictions).map(|(s, p)| show::checked_json(s, p)).collect::<Vec<_>>(),
        "refused": refused,
        "failed": failures,
        "all": show::statistics_json(&all),
    });
    if !fitted.is_empty() && !tested.is_empty() {
        for (key, title, part) in
            [("fit", "within 10 %, those of the fit", fitted), ("test", "within 10 %, those of the test", tested)]
        {
            let statistics = check::statistics(&part);
            sections.extend(show::statistics(title, &statistics).into_iter().take(1));
            json[key] = show::statistics_json(&statistics);
        }
    }
    if args.fit {
        let (notes, found) = fit(&samples)?;
        sections.push(show::notes("Fit", notes));
        json["coefficients"] = found;
    }
    if !refused.is_empty() {
        sections.push(show::notes("Refused", refused));
    }
    if !failures.is_empty() {
        sections.push(show::notes("Failed", failures.clone()));
    }
    let title = args.plan.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let title = format!("Slower memory, predicted and simulated: {title}, {} programs", samples.len());
    Ok(Findings {
        document: Document { title, columns: vec![String::new()], sections },
        plots: show::sorted(&samples, &predictions),
        json,
        failed: failures.len(),
    })
}

/// The coefficients that fit best, beside those in use.
fn fit(samples: &[&Sample]) -> Result<(Vec<String>, Json), Failure> {
    let found = check::fit(samples)
        .ok_or("--fit: no program of the set is there for it (fit = true) and has what method 5 needs")?;
    let now = *stalls::FITTED;
    let rows = [
        ("hidden", found.hidden, now.hidden),
        ("late", found.late, now.late),
        ("together", found.together, now.together),
        ("slowest", found.slowest, now.slowest),
        ("distance", found.distance, now.distance),
        ("streams", found.streams, now.streams),
    ];
    let notes =
        rows.iter().map(|(name, found, now)| format!("Method 5, {name}: found {found:.3}, in use {now:.3}.")).collect();
    let json = rows.iter().map(|(name, found, now)| ((*name).to_owned(), json!({ "found": found, "in_use": now })));
    Ok((notes, Json::Object(json.collect())))
}
