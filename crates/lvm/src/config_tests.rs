//! The configuration file, key by key and fault by fault.

use super::*;

fn check_fault(text: &str, expected: &str) {
    let error = Config::read(text).expect_err(text).to_string();
    assert!(error.contains(expected), "{text}\n{error}");
}

fn class(rest: &str) -> String {
    format!("device-classes: [{{name: ssd, {rest}}}]")
}

#[test]
fn a_file_of_topolvm_means_the_same_here() {
    let text = r#"
socket-name: /run/topolvm/lvmd.sock
lvm-command-prefix: [lvm]
device-classes:
  - name: ssd
    volume-group: myvg1
    default: true
    spare-gb: 5
    stripe: 2
    stripe-size: "64"
    lvcreate-options: ["--mirrors=1"]
  - name: hdd
    volume-group: myvg2
  - name: thin
    type: thin
    volume-group: myvg1
    thin-pool:
      name: pool0
      overprovision-ratio: 10.0
lvcreate-option-classes:
  - name: raid
    options: ["--type=raid1"]
"#;
    let config = Config::read(text).unwrap();
    assert_eq!(config.prefix, ["lvm"]);
    assert_eq!(config.socket, PathBuf::from("/run/topolvm/lvmd.sock"));
    let ssd = LvmClass {
        default: true,
        stripe: Some(2),
        stripe_size: Some("64".to_owned()),
        options: vec!["--mirrors=1".to_owned()],
        ..LvmClass::new("ssd", "myvg1", Kind::Thick { spare: 5 << 30 })
    };
    let hdd = LvmClass::new("hdd", "myvg2", Kind::Thick { spare: 10 << 30 });
    let pool = Kind::Thin { pool: "pool0".to_owned(), overprovision: 10.0, guard: Guard::default() };
    assert_eq!(config.lvm, [ssd, hdd, LvmClass::new("thin", "myvg1", pool)]);
    assert_eq!(config.option_classes["raid"], ["--type=raid1"]);
}

#[test]
fn our_own_keys() {
    let text = r#"
lvm-config: activation/udev_sync=0
device-classes:
  - {name: plain, type: dir, path: /var/lib/volumes, limit-gb: 3, spare-gb: 1}
  - {name: quick, volume-group: g, wipe: none, spare-gb: 0}
  - name: thin
    type: thin
    volume-group: g
    thin-pool: {name: p, overprovision-ratio: 1, guard: {warn-percent: 70, extend-percent: 20}}
"#;
    let config = Config::read(text).unwrap();
    assert_eq!(config.lvm_config, "activation/udev_sync=0");
    assert_eq!(config.prefix.last().unwrap(), "/sbin/lvm");
    let [plain] = &config.directories[..] else { panic!("one directory class") };
    assert_eq!((plain.limit, plain.spare), (Some(3 << 30), 1 << 30));
    assert_eq!(config.lvm[0].wipe, Wipe::None);
    let Kind::Thin { guard, .. } = &config.lvm[1].kind else { panic!("thin") };
    assert_eq!(*guard, Guard { warn_percent: 70.0, stop_percent: 95.0, extend_percent: 20.0 });
}

#[test]
fn faults_are_named() {
    check_fault("device-classes: [", "cannot be read");
    check_fault("device-classes: []", "name at least one");
    check_fault("{}", "name at least one");
    check_fault(&class("volume-group: g, spare: 3"), "cannot be read");
    check_fault(&class("default: true"), "volume-group is missing");
    check_fault(&class("volume-group: g, type: thin"), "needs thin-pool");
    check_fault(&class("volume-group: g, type: odd"), "cannot be read");
    let pool = |pool: &str| class(&format!("volume-group: g, type: thin, thin-pool: {pool}"));
    check_fault(&pool("{name: p, overprovision-ratio: 0.9}"), "at least 1.0");
    check_fault(&pool("{name: p, overprovision-ratio: .nan}"), "at least 1.0");
    check_fault(&pool("{name: p}"), "cannot be read");
    check_fault(&pool("{name: '', overprovision-ratio: 1}"), "thin-pool needs a name");
    check_fault(&pool("{name: p, overprovision-ratio: 1, guard: {stop-percent: 101}}"), "guard needs");
    check_fault(&pool("{name: p, overprovision-ratio: 1, guard: {warn-percent: 99}}"), "guard needs");
    check_fault(&class("volume-group: g, thin-pool: {name: p, overprovision-ratio: 1}"), "write type: thin");
    check_fault(&class("type: dir"), "needs a path");
    check_fault(&class("volume-group: g, path: /x"), "path is for type dir");
    check_fault(&class(&format!("volume-group: g, spare-gb: {}", u64::MAX)), "more than can be counted");
    check_fault("lvm-command-prefix: []\ndevice-classes: [{name: a, volume-group: g}]", "is empty");
    let two =
        |second: &str| format!("device-classes: [{{name: a, default: true, volume-group: g}}, {second}]");
    check_fault(&two("{name: a, volume-group: h}"), "given twice");
    check_fault(&two("{name: b, volume-group: g}"), "used by another class");
    check_fault(&two("{name: b, default: true, volume-group: h}"), "more than one");
    for name in ["''", "'-a'", "'a-'", "'a b'", &"n".repeat(64)] {
        check_fault(&format!("device-classes: [{{name: {name}, volume-group: g}}]"), "a name has");
    }
    let options =
        "lvcreate-option-classes: [{name: o}, {name: o}]\ndevice-classes: [{name: a, volume-group: g}]";
    check_fault(options, "given twice");
}
