//! From arguments to an exit code.

use std::collections::HashMap;
use std::ffi::OsString;
use std::future::Future;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};

use crate::commands::Command;
use crate::config_file::{self, Settings};
use crate::data_dir;
use crate::failure::Failure;
use crate::language::Language;
use crate::output;

/// The AI routing gateway: one address in front of all your AI services.
///
/// `penstock up` starts everything with a demo; `penstock proxy` and `penstock control` start one plane each. All
/// other commands talk to a running control plane (--server).
#[derive(Debug, Parser)]
#[command(name = "penstock", version, after_help = "Start here:\n  penstock up")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What a command knows about its surroundings.
#[derive(Debug)]
pub(crate) struct Context {
    /// How the program was called, for advice that can be copied.
    pub(crate) program: String,
    /// All variables, read once.
    pub(crate) environment: HashMap<String, String>,
    /// The language of messages to people.
    pub(crate) language: Language,
    /// Is standard output a terminal?
    pub(crate) color: bool,
}

impl Context {
    /// The folder for state: the flag's, else the platform's.
    pub(crate) fn data_dir(&self, flag: Option<&PathBuf>) -> PathBuf {
        flag.cloned().unwrap_or_else(|| data_dir::default(&self.environment))
    }

    /// Who makes a change: the flag's, else the user's name on this machine.
    pub(crate) fn author(&self, flag: &str) -> String {
        let user = || ["USER", "LOGNAME"].iter().find_map(|name| self.environment.get(*name)).cloned();
        if flag.is_empty() { user().unwrap_or_default() } else { flag.to_owned() }
    }

    /// Runs a command's calls to their end, on this thread.
    pub(crate) fn block_on<T>(&self, future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|error| Failure::Start { part: "the runtime", detail: error.to_string() })?;
        runtime.block_on(future)
    }

    /// Tells people something beside the output proper.
    #[expect(clippy::print_stderr, reason = "messages for people go to standard error")]
    pub(crate) fn say(&self, text: &str) {
        eprintln!("{text}");
    }
}

/// The command line's definition.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the program. Exit codes: 0 done, 1 failed, 2 wrong usage.
pub fn run(arguments: impl IntoIterator<Item = OsString>, environment: HashMap<String, String>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let context = Context {
        program: arguments.first().map_or("penstock".into(), |name| name.to_string_lossy()).into_owned(),
        language: Language::of(&environment),
        color: std::io::stdout().is_terminal() && !environment.contains_key("NO_COLOR"),
        environment,
    };
    match execute(&arguments, &context) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Ended::Usage(error)) => {
            // Help and version are no failures. Nothing is left to do when standard error is gone.
            let _ = error.print();
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
        }
        Err(Ended::Failed(failure)) => {
            let _ = std::io::stderr().write_all(failure.render(context.language).as_bytes());
            ExitCode::FAILURE
        }
    }
}

enum Ended {
    Usage(clap::Error),
    Failed(Failure),
}

impl From<clap::Error> for Ended {
    fn from(error: clap::Error) -> Self {
        Self::Usage(error)
    }
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

fn execute(arguments: &[OsString], context: &Context) -> Result<(), Ended> {
    let definition = command();
    let matches = definition.clone().try_get_matches_from(arguments)?;
    let (name, sub) = matches.subcommand().expect("clap insists on a subcommand");
    let plane = definition.find_subcommand(name).expect("clap has matched it");
    // Asked of the definition: matches of a release build say yes to every name.
    if !plane.get_arguments().any(|arg| arg.get_id() == "dump_config") {
        return Ok(run_command(&matches, context)?);
    }
    // A plane: its settings may come from a file, which needs a second look at the command line.
    let file = match sub.get_one::<PathBuf>("config") {
        Some(path) => config_file::read(path, plane)?,
        None => Settings::new(),
    };
    let mut defaults = file.clone();
    let folder = data_dir::default(&context.environment);
    defaults.entry("data_dir".to_owned()).or_insert_with(|| folder.display().to_string());
    let matches = config_file::apply(definition.clone(), name, &defaults).try_get_matches_from(arguments)?;
    let (_, sub) = matches.subcommand().expect("it was there the first time");
    if sub.get_flag("dump_config") {
        return Ok(output::print(&config_file::dump(plane, sub, &file))?);
    }
    Ok(run_command(&matches, context)?)
}

fn run_command(matches: &ArgMatches, context: &Context) -> Result<(), Failure> {
    let cli = Cli::from_arg_matches(matches).expect("the derived definition made the matches");
    cli.command.run(context)
}
