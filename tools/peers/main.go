// Command peers reads objects with the Go types of the systems whose names they bear: VolSync's, csi-addons', Open Cluster
// Management's, and with the tag ramen Ramen's.
//
//	peers OBJECTS STORE...
//
// OBJECTS is a folder with a file for each version of each object, as the API server gave it; a STORE has a file for each key. Everything
// is decoded strictly: a field that the type does not have, a value of another kind, a name that comes twice are faults.
// What was found is told as one JSON object.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

var (
	ramenTypes = false
	newConfig  func() any
	indices    = regexp.MustCompile(`\[\d+\]`)
)

// The key of Ramen's configuration in its ConfigMaps.
const configKey = "ramen_manager_config.yaml"

type report struct {
	RamenTypes bool `json:"ramenTypes"`
	// Objects that were decoded, by kind.
	Decoded map[string]int `json:"decoded"`
	// Objects of kinds that are not judged.
	Passed map[string]int `json:"passed"`
	// What was wrong, by kind and fault, with one place where it is so.
	Faults map[string]string `json:"faults"`
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: peers OBJECTS STORE...")
		os.Exit(2)
	}
	told := report{RamenTypes: ramenTypes, Decoded: map[string]int{}, Passed: map[string]int{}, Faults: map[string]string{}}
	err := each(os.Args[1], told.object)
	for _, store := range os.Args[2:] {
		if err == nil {
			err = each(store, told.record)
		}
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(told)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func each(root string, found func(path string, text []byte) error) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return found(path, text)
	})
}

// object judges one object by the kind it names, and what lies within it.
func (told *report) object(path string, text []byte) error {
	var named struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(text, &named); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	kind := named.APIVersion + "/" + named.Kind
	empty, known := kinds[kind]
	if !known {
		told.Passed[kind]++
		return nil
	}
	object := empty()
	told.strictly(kind, path, text, object)
	for _, inner := range within(object) {
		if err := told.object(path, inner); err != nil {
			return err
		}
	}
	if settings, is := object.(*corev1.ConfigMap); is && settings.Data[configKey] != "" && newConfig != nil {
		converted, err := yaml.YAMLToJSONStrict([]byte(settings.Data[configKey]))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		told.strictly("RamenConfig", path, converted, newConfig())
	}
	return nil
}

// record judges one object of a store by the type in its key, as Ramen reads it; our own documents are not Ramen's to read.
func (told *report) record(path string, packed []byte) error {
	short := map[string]string{
		"v1.PersistentVolume": "v1/PersistentVolume", "v1.PersistentVolumeClaim": "v1/PersistentVolumeClaim",
		"v1alpha1.VolumeReplicationGroup": "ramendr.openshift.io/v1alpha1/VolumeReplicationGroup",
	}
	for _, part := range strings.Split(filepath.ToSlash(path), "/") {
		kind, is := short[part]
		if !is {
			continue
		}
		reader, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		var text bytes.Buffer
		if _, err := text.ReadFrom(reader); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if empty, known := kinds[kind]; known {
			told.strictly("record of "+kind, path, text.Bytes(), empty())
		} else {
			told.Passed["record of "+kind]++
		}
	}
	return nil
}

func (told *report) strictly(kind, path string, text []byte, object any) {
	told.Decoded[kind]++
	faults, err := kjson.UnmarshalStrict(text, object)
	if err != nil {
		faults = append(faults, err)
	}
	for _, fault := range faults {
		told.Faults[kind+": "+indices.ReplaceAllString(fault.Error(), "")] = filepath.Base(path)
	}
}
