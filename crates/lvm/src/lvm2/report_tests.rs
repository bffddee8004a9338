//! What LVM prints, in all its dialects, and what is no report at all.

use super::*;

fn check(text: &str, expected: Result<Option<Report>, Unreadable>) {
    assert_eq!(read_report(text, "fast"), expected, "{text}");
}

/// A report of group `fast` with these rows.
fn printed(rows: &str) -> String {
    format!(
        r#"  {{
      "report": [
          {{
              "vg": [
                  {{"vg_name":"fast", "vg_size":"1069547520", "vg_free":"536870912", "vg_extent_size":"4194304", "vg_missing_pv_count":"0"}}
              ]
              ,
              "pv": [
                  {{}}
              ]
              ,
              "lv": [
                  {rows}
              ]
          }}
      ]
  }}"#
    )
}

fn group(volumes: &[(&str, Row)]) -> Report {
    Report {
        id: String::new(),
        size: 1_069_547_520,
        free: 536_870_912,
        extent: 4_194_304,
        missing: 0,
        volumes: volumes.iter().map(|(name, row)| ((*name).to_owned(), row.clone())).collect(),
    }
}

fn thick() -> Row {
    Row {
        path: "/dev/fast/a".to_owned(),
        size: 8_388_608,
        attr: "-wi-a-----".to_owned(),
        device: (253, 4),
        ..Row::default()
    }
}

#[test]
fn an_empty_group_has_no_volumes() {
    check(&printed(""), Ok(Some(group(&[]))));
}

#[test]
fn values_may_be_strings_or_numbers() {
    let strings = r#"{"lv_name":"a", "lv_path":"/dev/fast/a", "lv_size":"8388608", "lv_attr":"-wi-a-----",
        "lv_kernel_major":"253", "lv_kernel_minor":"4", "lv_tags":"", "origin":"", "data_percent":""}"#;
    let numbers = r#"{"lv_name":"a", "lv_path":"/dev/fast/a", "lv_size":8388608, "lv_attr":"-wi-a-----",
        "lv_kernel_major":253, "lv_kernel_minor":4, "lv_tags":[], "origin":"", "data_percent":null}"#;
    let suffixed = strings.replace("8388608", "8388608B");
    for text in [strings, numbers, &suffixed] {
        check(&printed(text), Ok(Some(group(&[("a", thick())]))));
    }
}

#[test]
fn tags_are_read_in_both_forms_and_decoded() {
    let tagged = Row { tags: ["a b".to_owned(), "c".to_owned()].into(), ..thick() };
    let row = |tags: &str| {
        printed(&format!(
            r#"{{"lv_name":"a", "lv_path":"/dev/fast/a", "lv_size":"8388608", "lv_attr":"-wi-a-----",
            "lv_kernel_major":"253", "lv_kernel_minor":"4", "lv_tags":{tags}}}"#
        ))
    };
    check(&row(r#""a&20b,c""#), Ok(Some(group(&[("a", tagged.clone())]))));
    check(&row(r#"["a&20b","c"]"#), Ok(Some(group(&[("a", tagged)]))));
}

#[test]
fn an_inactive_volume_has_no_device() {
    let row = r#"{"lv_name":"a", "lv_path":"/dev/fast/a", "lv_size":"8388608", "lv_attr":"-wi-------",
        "lv_kernel_major":"-1", "lv_kernel_minor":"-1"}"#;
    let inactive = Row { device: (0, 0), attr: "-wi-------".to_owned(), ..thick() };
    assert!(!inactive.is_active());
    check(&printed(row), Ok(Some(group(&[("a", inactive)]))));
}

#[test]
fn a_copy_on_write_snapshot_is_as_large_as_its_origin() {
    let row = r#"{"lv_name":"s", "lv_path":"/dev/fast/s", "lv_size":"4194304", "lv_attr":"sri-I-s---",
        "lv_kernel_major":"253", "lv_kernel_minor":"7", "origin":"a", "origin_size":"8388608", "data_percent":"100.00"}"#;
    let cow = Row {
        path: "/dev/fast/s".to_owned(),
        attr: "sri-I-s---".to_owned(),
        device: (253, 7),
        origin: Some("a".to_owned()),
        data_percent: 100.0,
        ..thick()
    };
    assert!(cow.is_cow() && cow.is_read_only());
    check(&printed(row), Ok(Some(group(&[("s", cow)]))));
}

#[test]
fn a_pool_tells_how_full_it_is() {
    let row = r#"{"lv_name":"pool", "lv_path":"", "lv_size":"104857600", "lv_attr":"twi-aotz--",
        "lv_kernel_major":"253", "lv_kernel_minor":"2", "data_percent":"12.50", "metadata_percent":"10.94", "lv_metadata_size":"4194304"}"#;
    let pool = Row {
        path: String::new(),
        size: 104_857_600,
        attr: "twi-aotz--".to_owned(),
        device: (253, 2),
        data_percent: 12.5,
        metadata_percent: 10.94,
        metadata_size: 4_194_304,
        ..Row::default()
    };
    assert!(pool.is_pool() && pool.is_active() && pool.is_open());
    check(&printed(row), Ok(Some(group(&[("pool", pool)]))));
}

#[test]
fn messages_inside_the_report_are_left_out() {
    let text = printed("").replace(
        "\"report\": [",
        "\"report\": [\n  Consider pruning fast VG archive with more then 8 MiB in 9000 files (see archiving in lvm.conf).",
    );
    assert!(serde_json::from_str::<Value>(&text).is_err());
    check(&text, Ok(Some(group(&[]))));
}

#[test]
fn a_group_that_is_not_told_of_is_not_there() {
    check("", Ok(None));
    check(r#"{"report":[]}"#, Ok(None));
    check(r#"{"report":[{"vg":[{"vg_name":"other"}],"lv":[]}]}"#, Ok(None));
    check(r#"{"report":[{"vg":[]}]}"#, Ok(None));
}

#[test]
fn garbage_is_called_garbage() {
    for text in ["{", "lvm: not found", "[1, 2]", r#"{"report": 7}"#, "{\"report\":[{\"vg\":[{\"vg_name\":"] {
        let read = read_report(text, "fast");
        assert!(matches!(read, Err(Unreadable::NotJson(_))), "{text}: {read:?}");
    }
    let bad = |field, value: &str| Err(Unreadable::NotNumber { field, value: value.to_owned() });
    check(&printed("").replace("1069547520", "1.0g"), bad("vg_size", "1.0g"));
    check(&printed("").replace("536870912", "-7"), bad("vg_free", "-7"));
    check(&printed(r#"{"lv_name":"a","data_percent":"half"}"#), bad("data_percent", "half"));
    check(&printed(r#"{"lv_name":"a","data_percent":"NaN"}"#), bad("data_percent", "NaN"));
}

#[test]
fn errors_come_from_the_log_report_and_from_standard_error() {
    let log = r#"{ "log": [
        {"log_seq_num":"1", "log_type":"error", "log_message":"Volume group \"fast\" not found"},
        {"log_seq_num":"2", "log_type":"warn", "log_message":"nothing to see"},
        {"log_seq_num":"3", "log_type":"status", "log_message":"failure"} ] }"#;
    let not_found = "Volume group \"fast\" not found".to_owned();
    assert_eq!(read_errors(log, ""), std::slice::from_ref(&not_found));
    assert_eq!(read_errors(log, "\n  more \n"), [not_found, "more".to_owned()]);
    assert_eq!(read_errors("garbage", "only this"), ["only this"]);
}
