//! Starts simulated services from a shell, one per `DIALECT=ADDRESS`, and runs them until it is stopped:
//!
//! ```text
//! cargo run -p penstock-sim --example services -- --models m,n anthropic=127.0.0.1:28201 gemini=127.0.0.1:28202
//! ```
//!
//! What is given before a service holds for it and those after it: `--models A,B` are the models that it has, beside one
//! of its dialect's name; `--key KEY` is the key that it wants, without which it takes any; `--pace N` is how many tokens
//! a second it says; `--fault FAULT` is in force from the start. When it listens, its dialect and its address are printed,
//! one line for each service. Each is disturbed by `POST /sim/fault` and tells what it did at `GET /sim/stats`.

#![expect(clippy::print_stdout, reason = "a program for the shell")]

use std::error::Error;

use penstock_sim::{Dialect, Fault, ServiceConfig, start};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut models: Vec<String> = Vec::new();
    let (mut api_key, mut pace, mut fault) = (None, 0.0, Fault::default());
    let mut running = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--models" => models = value()?.split(',').map(str::to_owned).collect(),
            "--key" => api_key = Some(value()?),
            "--pace" => pace = value()?.parse()?,
            "--fault" => fault = Fault::parse(&value()?)?,
            _ => {
                let (dialect, address) =
                    argument.split_once('=').ok_or("each service is given as DIALECT=ADDRESS")?;
                let dialect: Dialect = dialect.parse()?;
                let config = ServiceConfig {
                    dialect,
                    listen: address.parse()?,
                    models: models.iter().cloned().chain([dialect.to_string()]).collect(),
                    api_key: api_key.clone(),
                    tokens_per_second: pace,
                    capture: true,
                    ..ServiceConfig::new(format!("sim-{dialect}"))
                };
                let service = start(config).await?;
                service.set_fault(fault.clone());
                println!("{dialect} {}", service.addr());
                running.push(service);
            }
        }
    }
    std::future::pending::<()>().await;
    Ok(())
}
