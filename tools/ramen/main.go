// Command ramen judges records by what Ramen would make of them. A store is a folder with one file for each key.
//
//	ramen check STORE NAMESPACE NAME         decodes every record strictly
//	ramen rewrite STORE NAMESPACE NAME INTO  decodes every record and writes it again, as Go encodes it
//	ramen write INTO NAMESPACE NAME          writes a group of its own
//
// What it did is told as one JSON object. Built with the tag ramen, groups have the type of Ramen's public API module.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
)

// Groups are of this type; where Ramen's is not built in, any object will do.
var newGroup = func() any { return &map[string]any{} }

// The part of a group's key that Ramen derives from its type.
var groupType = "v1alpha1.VolumeReplicationGroup"

type report struct {
	RamenTypes bool           `json:"ramenTypes"`
	Records    map[string]int `json:"records"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ramen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 4 {
		return fmt.Errorf("too few arguments")
	}
	told := report{RamenTypes: ramenTypes, Records: map[string]int{}}
	var err error
	switch args[0] {
	case "check":
		err = each(args[1], args[2], args[3], func(kind, _ string, object any) error {
			told.Records[kind]++
			return nil
		})
	case "rewrite":
		if len(args) != 5 {
			return fmt.Errorf("rewrite takes four arguments")
		}
		err = each(args[1], args[2], args[3], func(kind, key string, object any) error {
			told.Records[kind]++
			return upload(args[4], key, reflect.ValueOf(object).Elem().Interface())
		})
	case "write":
		err = group(args[1], args[2], args[3], &told)
	default:
		err = fmt.Errorf("%s is no command", args[0])
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(told)
}

// each lists by type, as Ramen does, and downloads what it finds.
func each(store, namespace, name string, found func(kind, key string, object any) error) error {
	kinds := []struct {
		kind string
		make func() any
	}{
		{reflect.TypeOf(corev1.PersistentVolume{}).String(), func() any { return &corev1.PersistentVolume{} }},
		{reflect.TypeOf(corev1.PersistentVolumeClaim{}).String(), func() any { return &corev1.PersistentVolumeClaim{} }},
		{groupType, newGroup},
	}
	for _, kind := range kinds {
		root := filepath.Join(store, namespace, name, kind.kind)
		err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if err != nil || info.IsDir() {
				return err
			}
			object := kind.make()
			if err := download(path, object); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			key, err := filepath.Rel(store, path)
			if err != nil {
				return err
			}
			return found(kind.kind, key, object)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// download reads a record once as Ramen does and once strictly, so that a field nobody knows is told.
func download(path string, object any) error {
	packed, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(reader); err != nil {
		return err
	}
	if err := json.NewDecoder(bytes.NewReader(text.Bytes())).Decode(object); err != nil {
		return err
	}
	strict := reflect.New(reflect.TypeOf(object).Elem()).Interface()
	faults, err := kjson.UnmarshalStrict(text.Bytes(), strict)
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return fmt.Errorf("strictly: %v", faults)
	}
	// Numbers of an object without a type are read differently and written the same.
	one, err := json.Marshal(strict)
	if err != nil {
		return err
	}
	other, err := json.Marshal(object)
	if err != nil {
		return err
	}
	if !bytes.Equal(one, other) {
		return fmt.Errorf("two readers disagree")
	}
	return nil
}

// upload writes a record as Ramen does.
func upload(store, key string, object any) error {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if err := json.NewEncoder(writer).Encode(object); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	path := filepath.Join(store, filepath.FromSlash(key))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, packed.Bytes(), 0o600)
}
