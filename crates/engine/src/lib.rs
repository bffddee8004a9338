//! How a controller runs: observe, decide, act
