//! A machine without processes, for stories of deaths: what runs on it outlives the runner until the next one opens it.
