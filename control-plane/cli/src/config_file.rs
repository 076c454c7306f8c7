//! `--config FILE`: settings by the names of their flags, as YAML, below the environment and above the defaults.
//!
//! A value from the file becomes the default of its flag before the command line is parsed for good, so that each
//! setting has one parser, one help text and one check, wherever it comes from.

use std::collections::BTreeMap;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use serde_yaml_ng::Value;

use crate::failure::Failure;

/// Flags that no file can hold: they say what to do, not how.
const NOT_SETTINGS: [&str; 4] = ["config", "check", "dump_config", "help"];

/// The settings of a file, by name of the flag.
pub(crate) type Settings = BTreeMap<String, String>;

/// Reads the file at `path` for `command`.
pub(crate) fn read(path: &Path, command: &Command) -> Result<Settings, Failure> {
    let text =
        std::fs::read_to_string(path).map_err(|source| Failure::File { path: path.to_owned(), source })?;
    parse(&text, command).map_err(|what| Failure::Setting {
        what: format!("{}: {what}", path.display()),
        advice: format!(
            "`penstock {} --dump-config` prints every setting as such a file",
            command.get_name()
        ),
    })
}

fn parse(text: &str, command: &Command) -> Result<Settings, String> {
    let values: Option<BTreeMap<String, Value>> =
        serde_yaml_ng::from_str(text).map_err(|error| error.to_string())?;
    let mut settings = Settings::new();
    for (name, value) in values.unwrap_or_default() {
        if !command.get_arguments().filter(|arg| is_setting(arg)).any(|arg| arg.get_id() == name.as_str()) {
            return Err(format!("there is no setting {name:?} of `penstock {}`", command.get_name()));
        }
        let value = match value {
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            _ => return Err(format!("{name} must be one value, not a list or a map")),
        };
        settings.insert(name, value);
    }
    Ok(settings)
}

/// Makes the settings the defaults of the flags of the subcommand `name`.
pub(crate) fn apply(command: Command, name: &str, settings: &Settings) -> Command {
    command.mut_subcommand(name, |mut subcommand| {
        for (id, value) in settings {
            let value = clap::builder::OsStr::from(value.clone());
            subcommand = subcommand.mut_arg(id, |arg| arg.default_value(value));
        }
        subcommand
    })
}

/// Every setting in force with where it came from, in the form of a configuration file.
pub(crate) fn dump(command: &Command, matches: &ArgMatches, file: &Settings) -> String {
    let mut text = String::new();
    for arg in command.get_arguments().filter(|arg| is_setting(arg)) {
        let id = arg.get_id().as_str();
        let Some(value) = matches.get_raw(id).and_then(|mut values| values.next()) else {
            continue;
        };
        let origin = match matches.value_source(id) {
            Some(ValueSource::CommandLine) => "flag",
            Some(ValueSource::EnvVariable) => "environment",
            _ if file.contains_key(id) => "file",
            _ => "default",
        };
        let value = redact(&value.to_string_lossy());
        let value = match value.parse::<f64>() {
            Ok(_) => value,
            Err(_) => serde_yaml_ng::to_string(&value).expect("a string is YAML"),
        };
        text.push_str(&format!("{id}: {}  # {origin}\n", value.trim_end()));
    }
    text
}

fn is_setting(arg: &Arg) -> bool {
    arg.get_long().is_some() && !NOT_SETTINGS.contains(&arg.get_id().as_str())
}

/// Hides what stands between `://` and `@`: the only place of a setting where a secret can be.
fn redact(value: &str) -> String {
    let Some((scheme, rest)) = value.split_once("://") else {
        return value.to_owned();
    };
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://***@{host}"),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        Command::new("penstock").subcommand(
            Command::new("proxy")
                .arg(Arg::new("config").long("config"))
                .arg(Arg::new("listen").long("listen").default_value("127.0.0.1:8080"))
                .arg(Arg::new("otlp").long("otlp"))
                .arg(Arg::new("zone").long("zone").env("PENSTOCK_TEST_ZONE_THAT_NOBODY_SETS")),
        )
    }

    fn proxy(command: &Command) -> Command {
        command.find_subcommand("proxy").unwrap().clone()
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        let settings = parse("listen: 0.0.0.0:80\nzone: a\n", &proxy(&command())).unwrap();
        let command = apply(command(), "proxy", &settings);
        let matches = command.clone().get_matches_from(["penstock", "proxy", "--zone", "b"]);
        let (_, matches) = matches.subcommand().unwrap();
        assert_eq!(
            dump(&proxy(&command), matches, &settings),
            "listen: 0.0.0.0:80  # file\nzone: b  # flag\n"
        );
    }

    #[test]
    fn a_dumped_configuration_reads_back() {
        let matches =
            command().get_matches_from(["penstock", "proxy", "--zone", "yes", "--otlp", "http://c:4317"]);
        let text = dump(&proxy(&command()), matches.subcommand().unwrap().1, &Settings::new());
        let settings = parse(&text, &proxy(&command())).unwrap();
        assert_eq!(settings["zone"], "yes");
        assert_eq!(settings["listen"], "127.0.0.1:8080");
    }

    #[test]
    fn passwords_in_addresses_are_not_dumped() {
        assert_eq!(redact("http://ann:s3cret@collector:4317"), "http://***@collector:4317");
        assert_eq!(redact("etcd://a:2379,b:2379"), "etcd://a:2379,b:2379");
    }

    #[test]
    fn unknown_settings_lists_and_broken_yaml_are_refused() {
        let proxy = proxy(&command());
        assert!(parse("listne: x", &proxy).unwrap_err().contains("\"listne\""));
        assert!(parse("config: x", &proxy).unwrap_err().contains("\"config\""));
        assert!(parse("listen: [a, b]", &proxy).unwrap_err().contains("one value"));
        assert!(parse("listen: [", &proxy).is_err());
        assert_eq!(parse("# nothing\n", &proxy), Ok(Settings::new()));
    }
}
