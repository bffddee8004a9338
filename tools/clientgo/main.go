// Command clientgo does against a cluster what controllers written in Go do, and fails where the server answers
// otherwise than Kubernetes does. It makes a namespace of its own and removes it again.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// cluster is one server, seen through every kind of client.
type cluster struct {
	// config asks for JSON.
	config *rest.Config
	// json and proto are the same typed client over the two encodings.
	json, proto kubernetes.Interface
	dynamic     dynamic.Interface
	metadata    metadata.Interface
	namespace   string
}

type check struct {
	name string
	run  func(context.Context, *cluster) error
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of an administrator")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := run(ctx, *kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string) error {
	c, err := connect(kubeconfig)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	made, err := c.json.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "clientgo-"},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making a namespace: %w", err)
	}
	c.namespace = made.Name
	checks := []check{
		{"discovery", discovery},
		{"typed clients over JSON and protobuf", typed},
		{"conflicts and preconditions", conflicts},
		{"lists in pages", pages},
		{"server-side apply", apply},
		{"patches", patches},
		{"informers", informers},
		{"metadata informers", metadataInformer},
		{"streaming lists", streamingList},
		{"custom resources over the dynamic client", customResources},
		{"leader election", leaderElection},
		{"tokens and access reviews", access},
		{"events", events},
	}
	failed := 0
	for _, check := range checks {
		begin := time.Now()
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		err := check.run(limited, c)
		cancel()
		if err != nil {
			failed++
			fmt.Printf("FAIL  %s: %v\n", check.name, err)
			continue
		}
		fmt.Printf("pass  %s (%s)\n", check.name, time.Since(begin).Round(time.Millisecond))
	}
	if err := c.json.CoreV1().Namespaces().Delete(ctx, c.namespace, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("removing the namespace: %w", err)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(checks))
	}
	return nil
}

func connect(kubeconfig string) (*cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 500, 500
	config.ContentType = "application/json"
	binary := rest.CopyConfig(config)
	binary.ContentType = protobuf
	binary.AcceptContentTypes = protobuf + ",application/json"
	c := &cluster{config: config}
	if c.json, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if c.proto, err = kubernetes.NewForConfig(binary); err != nil {
		return nil, err
	}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	c.metadata, err = metadata.NewForConfig(config)
	return c, err
}
