//! The commands that make an experiment's runs, for readers who want to vary them.

use fxscope_validate::Run;

use super::runs::runs_of;
use super::{Experiment, Guide, Laboratory, Needs};
use crate::Error;

/// The folder of the programs in the sources, which commands name.
const FOLDER: &str = "kernels/prebuilt";

/// Returns the commands of an experiment, one a line, with comments on where the programs come from.
///
/// # Errors
/// If the guide's data name what does not exist.
pub fn commands(guide: &Guide, experiment: &Experiment) -> Result<String, Error> {
    let runs = runs_of(guide, experiment)?;
    let mut text = format!("# {}: {}\n", experiment.id, experiment.title);
    if let Some(laboratory) = &experiment.laboratory {
        text.push_str(&of_laboratory(laboratory));
    }
    let mut programs: Vec<&str> = runs.iter().map(|run| run.program.as_str()).collect();
    programs.sort_unstable();
    programs.dedup();
    for program in programs {
        text.push_str(&format!("# {program}: loop, options and source files in kernels/README.md\n"));
    }
    match &experiment.needs {
        Some(needs) => text.push_str(&format!("# {} makes the program in the sources\n", needs.command)),
        None if runs.is_empty() => {}
        None => text.push_str(&format!("# fxscope guide --programs {FOLDER} writes the programs\n")),
    }
    text.extend(runs.iter().map(|run| command(run, experiment.needs.as_ref()) + "\n"));
    Ok(text)
}

fn command(run: &Run, needs: Option<&Needs>) -> String {
    let (sysroot, program) = match needs {
        Some(needs) => (format!("--sysroot {}", needs.root), needs.file.clone()),
        None => (String::new(), format!("{FOLDER}/{}.elf", run.program)),
    };
    let words = ["fxscope run", &sysroot, &run.options, "--", &program, &run.arguments];
    words.iter().filter(|word| !word.is_empty()).copied().collect::<Vec<_>>().join(" ")
}

/// Returns the command of a laboratory.
fn of_laboratory(laboratory: &Laboratory) -> String {
    match laboratory {
        Laboratory::Pages(name) => format!("fxscope pages experiment {name}\n"),
        Laboratory::Linpack(machine) => format!("fxscope jitter linpack --machine {machine}\n"),
        Laboratory::Noise(noise) => {
            let nodes: Vec<String> = noise.nodes.iter().map(u32::to_string).collect();
            let command = |model: &String| {
                format!(
                    "fxscope jitter simulate --model {model} --nodes {} --cores-per-node {} --network {}\n",
                    nodes.join(","),
                    noise.cores_per_node,
                    noise.network
                )
            };
            noise.models.iter().map(command).collect()
        }
        Laboratory::Latency(latency) => {
            let latencies: Vec<String> = latency.latencies.iter().map(f64::to_string).collect();
            let command = |subject: &super::data::Subject| {
                format!(
                    "fxscope latency check -m {} --latency {} --region {} -- {FOLDER}/{}.elf {}\n",
                    latency.machine,
                    latencies.join(","),
                    subject.region,
                    subject.program,
                    subject.arguments
                )
            };
            latency.programs.iter().map(command).collect()
        }
        Laboratory::Prefetched(prefetched) => {
            format!("fxscope machine prefetched --l1-lines {} --l2-lines {}\n", prefetched.l1, prefetched.l2)
        }
    }
}
