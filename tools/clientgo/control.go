package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

const crdKind = "CustomResourceDefinition"

var (
	crds    = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	widgets = schema.GroupVersionResource{Group: "clientgo.example.com", Version: "v1", Resource: "widgets"}
)

func object(fields map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: fields}
}

func customResources(ctx context.Context, c *cluster) error {
	definition := object(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       crdKind,
		"metadata":   map[string]any{"name": "widgets.clientgo.example.com"},
		"spec": map[string]any{
			"group": widgets.Group, "scope": "Namespaced",
			"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object",
					"properties": map[string]any{
						"spec": map[string]any{"type": "object", "properties": map[string]any{
							"size":  map[string]any{"type": "integer", "minimum": int64(1)},
							"color": map[string]any{"type": "string", "default": "red"},
						}},
						"status": map[string]any{"type": "object", "properties": map[string]any{
							"phase": map[string]any{"type": "string"},
						}},
					},
				}},
			}},
		},
	})
	if _, err := c.dynamic.Resource(crds).Create(ctx, definition, metav1.CreateOptions{}); err != nil {
		return err
	}
	defer c.dynamic.Resource(crds).Delete(context.WithoutCancel(ctx), definition.GetName(), metav1.DeleteOptions{})
	if err := eventually(ctx, func() bool { return established(ctx, c, definition.GetName()) }); err != nil {
		return fmt.Errorf("the definition is not established: %w", err)
	}
	client := c.dynamic.Resource(widgets).Namespace(c.namespace)
	widget := func(name string, size int64) *unstructured.Unstructured {
		return object(map[string]any{
			"apiVersion": "clientgo.example.com/v1", "kind": "Widget",
			"metadata": map[string]any{"name": name},
			"spec":     map[string]any{"size": size, "unknown": "pruned"},
			"status":   map[string]any{"phase": "not by create"},
		})
	}
	// The server may take a moment after the condition before it serves the path.
	var made *unstructured.Unstructured
	err := eventually(ctx, func() bool {
		var err error
		made, err = client.Create(ctx, widget("one", 1), metav1.CreateOptions{})
		return err == nil
	})
	if err != nil {
		return fmt.Errorf("no widget could be made: %w", err)
	}
	color, _, _ := unstructured.NestedString(made.Object, "spec", "color")
	_, unknown, _ := unstructured.NestedString(made.Object, "spec", "unknown")
	_, status, _ := unstructured.NestedMap(made.Object, "status")
	if color != "red" || unknown || status || made.GetGeneration() != 1 {
		return fmt.Errorf("a widget came back as %v", made.Object)
	}
	if _, err := client.Create(ctx, widget("bad", 0), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		return fmt.Errorf("a widget against its schema gives %v", err)
	}
	if err := unstructured.SetNestedField(made.Object, "Ready", "status", "phase"); err != nil {
		return err
	}
	made, err = client.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	if phase, _, _ := unstructured.NestedString(made.Object, "status", "phase"); phase != "Ready" || made.GetGeneration() != 1 {
		return fmt.Errorf("after a write of status: %v", made.Object)
	}
	applied, err := client.Apply(ctx, "two", object(map[string]any{
		"apiVersion": "clientgo.example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "two"}, "spec": map[string]any{"size": int64(2)},
	}), metav1.ApplyOptions{FieldManager: "clientgo"})
	if err != nil {
		return err
	}
	if len(applied.GetManagedFields()) != 1 {
		return fmt.Errorf("an applied widget is managed by %v", applied.GetManagedFields())
	}
	return client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

func established(ctx context.Context, c *cluster, name string) bool {
	current, err := c.dynamic.Resource(crds).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(current.Object, "status", "conditions")
	for _, condition := range conditions {
		if fields, ok := condition.(map[string]any); ok && fields["type"] == "Established" && fields["status"] == "True" {
			return true
		}
	}
	return false
}

// leaderElection lets two candidates run: one leads, and when it steps down the other takes over.
func leaderElection(ctx context.Context, c *cluster) error {
	leading := make(chan string, 2)
	candidate := func(ctx context.Context, id string) error {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: c.namespace, Name: "leader"},
				Client:     c.proto.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: id},
			},
			LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leading <- id },
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			return err
		}
		elector.Run(ctx)
		return nil
	}
	next := func() (string, error) {
		select {
		case id := <-leading:
			return id, nil
		case <-ctx.Done():
			return "", errors.New("nobody leads")
		}
	}
	var running sync.WaitGroup
	defer running.Wait()
	contexts := map[string]context.CancelFunc{}
	for _, id := range []string{"one", "two"} {
		own, cancel := context.WithCancel(ctx)
		defer cancel()
		contexts[id] = cancel
		running.Go(func() {
			if err := candidate(own, id); err != nil {
				fmt.Println("candidate", id, err)
			}
		})
	}
	first, err := next()
	if err != nil {
		return err
	}
	contexts[first]()
	second, err := next()
	if err != nil {
		return err
	}
	if first == second {
		return fmt.Errorf("%s leads twice", first)
	}
	lease, err := c.json.CoordinationV1().Leases(c.namespace).Get(ctx, "leader", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != second {
		return fmt.Errorf("the lease names %v", lease.Spec.HolderIdentity)
	}
	return nil
}

// access asks for a token of a service account, uses it, and is refused what the account may not do.
func access(ctx context.Context, c *cluster) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}
	accounts := c.proto.CoreV1().ServiceAccounts(c.namespace)
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return err
	}
	token, err := accounts.CreateToken(ctx, "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	config := rest.AnonymousClientConfig(c.config)
	config.BearerToken = token.Status.Token
	robot, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	who, err := robot.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if want := "system:serviceaccount:" + c.namespace + ":robot"; who.Status.UserInfo.Username != want {
		return fmt.Errorf("the token is of %q, not %q", who.Status.UserInfo.Username, want)
	}
	if _, err = robot.CoreV1().Secrets(c.namespace).List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		return fmt.Errorf("an account without rights reads secrets: %v", err)
	}
	review, err := c.json.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: c.namespace, Verb: "delete", Resource: "secrets",
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if !review.Status.Allowed {
		return errors.New("an administrator may not delete secrets")
	}
	config.BearerToken = "nonsense"
	stranger, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if _, err = stranger.CoreV1().Secrets(c.namespace).List(ctx, metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		return fmt.Errorf("a token that is none gives %v", err)
	}
	return nil
}

// events are recorded the way controllers do it.
func events(ctx context.Context, c *cluster) error {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.proto.CoreV1().Events(c.namespace)})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "clientgo"})
	about, err := c.json.CoreV1().ConfigMaps(c.namespace).Create(ctx, labelled("events", "about"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	reference := &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: c.namespace, Name: about.Name, UID: about.UID}
	// The same event twice is one object with a count.
	recorder.Event(reference, corev1.EventTypeNormal, "Tried", "it was tried")
	recorder.Event(reference, corev1.EventTypeNormal, "Tried", "it was tried")
	var list *corev1.EventList
	err = eventually(ctx, func() bool {
		list, err = c.json.CoreV1().Events(c.namespace).List(ctx, metav1.ListOptions{
			FieldSelector: "involvedObject.uid=" + string(about.UID),
		})
		return err == nil && meta.LenList(list) == 1 && list.Items[0].Count == 2
	})
	if err != nil {
		return fmt.Errorf("the events are %v: %w", list, err)
	}
	return nil
}
