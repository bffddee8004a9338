package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// sightings counts what an informer tells.
type sightings struct {
	mu                      sync.Mutex
	added, changed, removed int
}

func (r *sightings) handler() cache.ResourceEventHandler {
	count := func(n *int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		*n++
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { count(&r.added) },
		UpdateFunc: func(any, any) { count(&r.changed) },
		DeleteFunc: func(any) { count(&r.removed) },
	}
}

func (r *sightings) reaches(ctx context.Context, added, changed, removed int) error {
	err := eventually(ctx, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.added >= added && r.changed >= changed && r.removed >= removed
	})
	if err != nil {
		return fmt.Errorf("told of %d added, %d changed, %d removed: %w", r.added, r.changed, r.removed, err)
	}
	return nil
}

func eventually(ctx context.Context, done func() bool) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return done(), nil })
}

// story makes one more object beside one that is there, changes it and removes it.
func story(ctx context.Context, c *cluster, set string) error {
	maps := c.json.CoreV1().ConfigMaps(c.namespace)
	object, err := maps.Create(ctx, labelled(set, "second"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	object.Data = map[string]string{"changed": "yes"}
	if _, err = maps.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return maps.Delete(ctx, object.Name, metav1.DeleteOptions{})
}

func labelled(set, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: set + "-" + name, Labels: map[string]string{"set": set}}}
}

func informers(ctx context.Context, c *cluster) error {
	for name, client := range map[string]kubernetes.Interface{"json": c.json, "protobuf": c.proto} {
		set := "informer-" + name
		if _, err := c.json.CoreV1().ConfigMaps(c.namespace).Create(ctx, labelled(set, "first"), metav1.CreateOptions{}); err != nil {
			return err
		}
		factory := kubeinformers.NewSharedInformerFactoryWithOptions(client, 0,
			kubeinformers.WithNamespace(c.namespace),
			kubeinformers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "set=" + set }))
		informer := factory.Core().V1().ConfigMaps().Informer()
		if err := observe(ctx, c, informer, set); err != nil {
			return fmt.Errorf("over %s: %w", name, err)
		}
	}
	return nil
}

func metadataInformer(ctx context.Context, c *cluster) error {
	set := "informer-metadata"
	if _, err := c.json.CoreV1().ConfigMaps(c.namespace).Create(ctx, labelled(set, "first"), metav1.CreateOptions{}); err != nil {
		return err
	}
	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	informer := metadatainformer.NewFilteredMetadataInformer(c.metadata, resource, c.namespace, 0, cache.Indexers{},
		func(options *metav1.ListOptions) { options.LabelSelector = "set=" + set })
	return observe(ctx, c, informer.Informer(), set)
}

func observe(ctx context.Context, c *cluster, informer cache.SharedIndexInformer, set string) error {
	ctx, stop := context.WithCancel(ctx)
	seen := &sightings{}
	if _, err := informer.AddEventHandler(seen.handler()); err != nil {
		stop()
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	defer running.Wait()
	defer stop()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.New("the cache did not fill")
	}
	if held := len(informer.GetStore().List()); held != 1 {
		return fmt.Errorf("the cache holds %d objects", held)
	}
	if err := story(ctx, c, set); err != nil {
		return err
	}
	return seen.reaches(ctx, 2, 1, 1)
}

// streamingList asks for the list as the beginning of a watch, and for the mark that ends it.
func streamingList(ctx context.Context, c *cluster) error {
	for i := range 3 {
		object := labelled("streamed", fmt.Sprint(i))
		if _, err := c.json.CoreV1().ConfigMaps(c.namespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	yes := true
	for name, client := range map[string]kubernetes.Interface{"json": c.json, "protobuf": c.proto} {
		stream, err := client.CoreV1().ConfigMaps(c.namespace).Watch(ctx, metav1.ListOptions{
			LabelSelector:        "set=streamed",
			SendInitialEvents:    &yes,
			AllowWatchBookmarks:  true,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		})
		if err != nil {
			return fmt.Errorf("over %s: %w", name, err)
		}
		err = untilMark(stream, 3)
		stream.Stop()
		if err != nil {
			return fmt.Errorf("over %s: %w", name, err)
		}
	}
	return nil
}

func untilMark(stream watch.Interface, expected int) error {
	added := 0
	for event := range stream.ResultChan() {
		switch event.Type {
		case watch.Added:
			added++
		case watch.Bookmark:
			mark := event.Object.(*corev1.ConfigMap)
			if mark.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
				continue
			}
			if added != expected || mark.ResourceVersion == "" {
				return fmt.Errorf("%d objects before the mark at %q", added, mark.ResourceVersion)
			}
			return nil
		default:
			return fmt.Errorf("an event %s: %v", event.Type, event.Object)
		}
	}
	return errors.New("the watch ended before the mark")
}
