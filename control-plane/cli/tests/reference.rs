//! The command line's documentation is what the command line says.

#[test]
fn the_command_reference_is_up_to_date() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    let found = std::fs::read_to_string(page).unwrap_or_default();
    assert!(found == penstock::reference(), "docs/reference/cli.md is out of date: run `make generate`");
}

/// Every command says how it is used by an example, and what each of its flags does.
#[test]
fn every_command_has_an_example_and_every_flag_a_description() {
    let mut root = penstock::command();
    root.build();
    let mut commands = vec![root];
    while let Some(command) = commands.pop() {
        let subcommands: Vec<_> =
            command.get_subcommands().filter(|sub| sub.get_name() != "help").cloned().collect();
        let name = command.get_name().to_owned();
        assert!(command.get_about().is_some(), "{name} says what it does");
        if subcommands.is_empty() {
            let example = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(example.contains("  penstock "), "{name} has an example: {example:?}");
        }
        for arg in command.get_arguments() {
            assert!(arg.get_help().is_some(), "{name} {} has no description", arg.get_id());
        }
        commands.extend(subcommands);
    }
}

/// Every setting of a plane can be given as a variable, named after its flag.
#[test]
fn every_setting_is_also_a_variable() {
    let root = penstock::command();
    let is_plane =
        |command: &&clap::Command| command.get_arguments().any(|arg| arg.get_id() == "dump_config");
    let planes: Vec<_> = root.get_subcommands().filter(is_plane).collect();
    assert!(!planes.is_empty());
    for plane in planes {
        let name = plane.get_name();
        for arg in plane.get_arguments() {
            let flag = arg.get_id().as_str();
            if ["check", "dump_config", "help", "version"].contains(&flag) {
                continue;
            }
            let variable = arg.get_env().unwrap_or_default().to_string_lossy().into_owned();
            assert_eq!(variable, format!("PENSTOCK_{}", flag.to_uppercase()), "penstock {name} --{flag}");
        }
    }
}
