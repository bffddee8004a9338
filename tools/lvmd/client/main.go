// Talks to a lvmd as TopoLVM's own clients do, with TopoLVM's own messages: lvmd-client SOCKET CLASS.
//
// Prints one line for each call and ends with code 0 only if every answer was the right one.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/topolvm/topolvm/pkg/lvmd/proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

const size = 16 << 20

// check ends the program unless the answer has the code that is expected.
func check(what string, err error, expected codes.Code) {
	code := status.Code(err)
	if code != expected {
		fmt.Printf("%s: %v instead of %v: %v\n", what, code, expected, err)
		os.Exit(1)
	}
	fmt.Printf("%s: %v\n", what, code)
}

// must ends the program unless what it is told is so.
func must(what string, so bool) {
	if !so {
		fmt.Printf("%s: no\n", what)
		os.Exit(1)
	}
	fmt.Printf("%s: yes\n", what)
}

func main() {
	socket, class := os.Args[1], os.Args[2]
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	check("connect", err, codes.OK)
	lv, vg := proto.NewLVServiceClient(connection), proto.NewVGServiceClient(connection)

	answer, err := grpc_health_v1.NewHealthClient(connection).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	check("health", err, codes.OK)
	must("serving", answer.Status == grpc_health_v1.HealthCheckResponse_SERVING)

	watch, err := vg.Watch(ctx, &proto.Empty{})
	check("watch", err, codes.OK)
	first, err := watch.Recv()
	check("first message", err, codes.OK)
	must("tells of the class", len(first.Items) == 1 && first.Items[0].DeviceClass == class)

	made, err := lv.CreateLV(ctx, &proto.CreateLVRequest{
		Name: "go", DeviceClass: class, SizeBytes: size, Tags: []string{"one", "two"},
	})
	check("create", err, codes.OK)
	must("has its size", made.Volume.Name == "go" && made.Volume.SizeBytes == size)
	next, err := watch.Recv()
	check("next message", err, codes.OK)
	must("tells of less room", next.Items[0].FreeBytes <= first.Items[0].FreeBytes-size)

	_, err = lv.CreateLV(ctx, &proto.CreateLVRequest{Name: "other", DeviceClass: "nowhere", SizeBytes: size})
	check("create in no class", err, codes.NotFound)
	_, err = lv.CreateLV(ctx, &proto.CreateLVRequest{Name: "other", DeviceClass: class, SizeBytes: 1 << 60})
	check("create without room", err, codes.ResourceExhausted)

	grown, err := lv.ResizeLV(ctx, &proto.ResizeLVRequest{Name: "go", DeviceClass: class, SizeBytes: 2 * size})
	check("resize", err, codes.OK)
	must("has grown", grown.SizeBytes == 2*size)

	copied, err := lv.CreateLVSnapshot(ctx, &proto.CreateLVSnapshotRequest{
		Name: "copy", DeviceClass: class, SourceVolume: "go", AccessType: "ro", SizeBytes: 2 * size, Tags: []string{"three"},
	})
	check("snapshot", err, codes.OK)
	must("is named", copied.Snapshot.Name == "copy")
	_, err = lv.CreateLVSnapshot(ctx, &proto.CreateLVSnapshotRequest{
		Name: "less", DeviceClass: class, SourceVolume: "go", AccessType: "rw", SizeBytes: size,
	})
	check("snapshot that is too small", err, codes.OutOfRange)

	list, err := vg.GetLVList(ctx, &proto.GetLVListRequest{DeviceClass: class})
	check("list", err, codes.OK)
	must("shows both", len(list.Volumes) == 2 && list.Volumes[0].Name == "copy" && list.Volumes[1].Name == "go")
	must("shows tags and places", len(list.Volumes[1].Tags) == 2 && list.Volumes[1].Path != "" && list.Volumes[1].Attr != "")
	free, err := vg.GetFreeBytes(ctx, &proto.GetFreeBytesRequest{DeviceClass: class})
	check("free bytes", err, codes.OK)
	must("agrees with the watch", free.FreeBytes < next.Items[0].FreeBytes)

	for _, name := range []string{"copy", "go"} {
		_, err = lv.RemoveLV(ctx, &proto.RemoveLVRequest{Name: name, DeviceClass: class})
		check("remove "+name, err, codes.OK)
		_, err = lv.RemoveLV(ctx, &proto.RemoveLVRequest{Name: name, DeviceClass: class})
		check("remove again", err, codes.NotFound)
	}
}
