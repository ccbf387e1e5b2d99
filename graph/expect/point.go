package expect

import (
	"bytes"
	"embed"
	"encoding/csv"
	"fmt"
	"strconv"
)

// Bands of sizes, in bytes, in which errors are stated.
const (
	smallBytes = 2 << 20  // below it launches differ
	midBytes   = 64 << 20 // from it on published runs agree
)

// Point is one measured time with all that the form needs.
type Point struct {
	ID   string // of the machine and how it was set up
	Site string // points of one site were measured on the same machines
	Machine
	Run
	Curve         string // points of one curve differ in size and launch only
	TimeUS        float64
	LowUS, HighUS float64 // of several launches; 0 = not known
	GPU           string
	NCCL          string
	Grade         string // A or B for published runs, as far as their conditions are stated; own
	Source, Note  string
}

// Published reports that others measured it.
func (p *Point) Published() bool { return p.Grade != Own }

// Own is the grade of points that we measured.
const Own = "own"

//go:embed data
var data embed.FS

// Points returns the measured points that ship: own ones, then published.
func Points() ([]Point, error) {
	ours, err := read("own.csv")
	if err != nil {
		return nil, err
	}
	others, err := PublishedPoints()
	return append(ours, others...), err
}

// PublishedPoints returns those that others measured.
func PublishedPoints() ([]Point, error) { return read("published.csv") }

func read(name string) ([]Point, error) {
	machines := map[string]Point{}
	err := eachRow("machines.csv", 15, func(f fields) {
		p := Point{ID: f.text(0), Site: f.text(1), GPU: f.text(2), NCCL: f.text(11), Grade: f.text(12), Source: f.text(13), Note: f.text(14)}
		p.Machine = Machine{
			CC: f.int(3), Ranks: f.int(4), Nodes: f.int(5), LocalRanks: f.int(6), Link: Link(f.text(7)),
			LinkGBs: f.float(8), NetGBs: f.float(9), Fabric: f.text(10),
		}
		machines[p.ID] = p
	})
	if err != nil {
		return nil, err
	}
	var out []Point
	err = eachRow(name, 11, func(f fields) {
		p, ok := machines[f.text(0)]
		if !ok {
			f.fail("no machine %q", f.text(0))
		}
		p.Curve, p.Launch = f.text(1), f.text(6)
		p.Run = Run{Collective: f.text(2), Algo: f.text(3), Proto: f.text(4), Channels: f.int(5), Bytes: int64(f.int(7))}
		p.TimeUS, p.LowUS, p.HighUS = f.float(8), f.float(9), f.float(10)
		if p.TimeUS <= 0 || p.Bytes <= 0 {
			f.fail("no time or size")
		}
		out = append(out, p)
	})
	return out, err
}

// fields is a row of a table that ships with the program.
type fields struct {
	file  string
	row   int
	cells []string
	err   *error
}

func (f fields) fail(format string, args ...any) {
	if *f.err == nil {
		*f.err = fmt.Errorf("expect: %s row %d: %s", f.file, f.row, fmt.Sprintf(format, args...))
	}
}

func (f fields) text(i int) string { return f.cells[i] }

// int reads a number; an empty field is 0.
func (f fields) int(i int) int { return int(f.float(i)) }

func (f fields) float(i int) float64 {
	if f.cells[i] == "" {
		return 0
	}
	v, err := strconv.ParseFloat(f.cells[i], 64)
	if err != nil {
		f.fail("column %d: %q is not a number", i+1, f.cells[i])
	}
	return v
}

func eachRow(name string, columns int, take func(fields)) error {
	raw, err := data.ReadFile("data/" + name)
	if err != nil {
		return err
	}
	r := csv.NewReader(bytes.NewReader(raw))
	r.FieldsPerRecord = columns
	rows, err := r.ReadAll()
	if err != nil {
		return fmt.Errorf("expect: %s: %w", name, err)
	}
	for i, row := range rows[1:] {
		take(fields{name, i + 2, row, &err})
	}
	return err
}
