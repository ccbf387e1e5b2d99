package chart

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/ncclmap/ncclmap/graph/model"
	"github.com/ncclmap/ncclmap/tune"
)

// The palette of Okabe and Ito, which people with any colour vision tell apart.
var (
	black     = color.RGBA{A: 255}
	grey      = color.RGBA{120, 120, 120, 255}
	blue      = color.RGBA{0, 114, 178, 255}
	orange    = color.RGBA{230, 159, 0, 255}
	green     = color.RGBA{0, 158, 115, 255}
	purple    = color.RGBA{204, 121, 167, 255}
	vermilion = color.RGBA{213, 94, 0, 255}
	sky       = color.RGBA{86, 180, 233, 255}
)

// sans is the typeface, which plot brings along.
var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

// colourOf is that of an algorithm, the same in all panels.
func colourOf(algo string) color.RGBA {
	switch algo {
	case model.Ring:
		return blue
	case model.Tree:
		return orange
	case model.NVLS:
		return green
	case model.NVLSTree:
		return purple
	}
	return sky
}

// dashesOf are those of a protocol.
func dashesOf(proto string) []vg.Length {
	switch proto {
	case model.LL:
		return []vg.Length{vg.Points(1), vg.Points(2)}
	case model.LL128:
		return []vg.Length{vg.Points(5), vg.Points(2)}
	}
	return nil
}

const (
	panelWidth  = 17 * vg.Centimeter
	panelHeight = 11 * vg.Centimeter
	mostColumns = 2
	dpi         = 144
)

// Draw draws a panel for each collective, as "svg" or "png".
func Draw(w io.Writer, format, title string, lines []tune.Line) error {
	var collectives []string
	for _, l := range lines {
		if !slices.Contains(collectives, l.Collective) {
			collectives = append(collectives, l.Collective)
		}
	}
	if len(collectives) == 0 {
		return fmt.Errorf("chart: nothing to draw: there is no prediction")
	}
	columns := min(mostColumns, len(collectives))
	rows := (len(collectives) + columns - 1) / columns
	plots := make([][]*plot.Plot, rows)
	for r := range plots {
		plots[r] = make([]*plot.Plot, columns)
	}
	for i, c := range collectives {
		p, err := panel(title, c, lines)
		if err != nil {
			return fmt.Errorf("chart: %s: %w", c, err)
		}
		plots[i/columns][i%columns] = p
	}
	width, height := vg.Length(columns)*panelWidth, vg.Length(rows)*panelHeight
	var canvas vg.CanvasWriterTo
	if format == "png" {
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))}
	} else {
		canvas = vgsvg.New(width, height)
	}
	tiles := draw.Tiles{Rows: rows, Cols: columns, PadTop: 8, PadBottom: 8, PadLeft: 8, PadRight: 12, PadX: 20, PadY: 20}
	for r, row := range plot.Align(plots, tiles, draw.New(canvas)) {
		for c := range row {
			if plots[r][c] != nil {
				plots[r][c].Draw(row[c])
			}
		}
	}
	_, err := canvas.WriteTo(w)
	return err
}

// panel is the plot of one collective.
func panel(title, collective string, lines []tune.Line) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = strings.TrimSpace(collective + "  " + title)
	for style, size := range map[*text.Style]vg.Length{
		&p.Title.TextStyle: 12, &p.X.Label.TextStyle: 10, &p.Y.Label.TextStyle: 10, &p.X.Tick.Label: 9, &p.Y.Tick.Label: 9, &p.Legend.TextStyle: 8,
	} {
		style.Font = font.From(sans, size)
	}
	p.Title.Padding = 6
	p.X.Label.Text, p.Y.Label.Text = "size", "bus bandwidth, GB/s"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.ConstantTicks(nil)
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.ThumbnailWidth = 26
	p.Legend.Padding = 1
	p.Add(grid())
	var sources []string
	for _, l := range lines {
		if !slices.Contains(sources, l.Source) {
			sources = append(sources, l.Source)
		}
	}
	least, most := math.Inf(1), 0.0
	for _, kind := range []string{tune.LineBelieved, tune.LineAlternative, tune.LineChosen, tune.LinePublished, tune.LineMeasured} {
		for _, l := range lines {
			if l.Collective != collective || l.Kind != kind {
				continue
			}
			if err := add(p, &l, slices.Index(sources, l.Source), len(sources)); err != nil {
				return nil, err
			}
			for _, x := range l.Points {
				least, most = min(least, float64(x.Bytes)), max(most, float64(x.Bytes))
			}
		}
	}
	if math.IsInf(least, 1) {
		return nil, fmt.Errorf("no sizes")
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = least, max(most, 2*least), -0.01*p.Y.Max, 1.04*p.Y.Max
	p.X.Tick.Marker, p.Y.Tick.Marker = sizeTicks(p.X.Min, p.X.Max), plot.TickerFunc(rateTicks)
	return p, nil
}

func grid() *plotter.Grid {
	g := plotter.NewGrid()
	for _, s := range []*draw.LineStyle{&g.Vertical, &g.Horizontal} {
		s.Color, s.Width = color.RGBA{225, 225, 225, 255}, vg.Points(0.5)
	}
	return g
}

// sizeTicks label every fourth power of two in the words of nccl-tests.
func sizeTicks(least, most float64) plot.ConstantTicks {
	var out plot.ConstantTicks
	for e := math.Ceil(math.Log2(least)); e <= math.Log2(most); e++ {
		tick := plot.Tick{Value: math.Exp2(e)}
		if int(e)%3 == 0 {
			i := int(e) / 10
			tick.Label = fmt.Sprintf("%d%s", 1<<(int(e)%10), []string{"", "K", "M", "G", "T", "P"}[i])
		}
		out = append(out, tick)
	}
	return out
}

// rateTicks label round rates without decimals where they are whole.
func rateTicks(least, most float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(least, most)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = strconv.FormatFloat(ticks[i].Value, 'g', 4, 64)
		}
	}
	return ticks
}

// add draws one line. With several sources the colour tells the source.
func add(p *plot.Plot, l *tune.Line, source, sources int) error {
	name, tint := l.Kind, black
	if sources > 1 {
		name, tint = l.Source+": "+l.Kind, []color.RGBA{black, vermilion, blue, green, purple, orange, sky}[source%7]
	}
	switch l.Kind {
	case tune.LineChosen:
		return addChosen(p, l, name, tint, sources > 1)
	case tune.LinePublished, tune.LineMeasured:
		return addPoints(p, l, name, tint, sources > 1)
	case tune.LineAlternative:
		if sources > 1 {
			return nil // too many to tell apart
		}
		name = strings.TrimSpace("expected, " + l.Algo + " " + l.Proto)
		return addLine(p, xys(l.Points, true), name, draw.LineStyle{Color: colourOf(l.Algo), Width: vg.Points(0.9), Dashes: dashesOf(l.Proto)})
	}
	style := draw.LineStyle{Color: grey, Width: vg.Points(0.9), Dashes: []vg.Length{vg.Points(6), vg.Points(2), vg.Points(1), vg.Points(2)}}
	if sources > 1 {
		style.Color = tint
	}
	return addLine(p, xys(l.Points, false), name, style)
}

func xys(points []tune.LinePoint, calibrated bool) (out plotter.XYs) {
	for _, x := range points {
		if x.BusBWGBs > 0 && (x.Calibrated || !calibrated) {
			out = append(out, plotter.XY{X: float64(x.Bytes), Y: x.BusBWGBs})
		}
	}
	return out
}

func addLine(p *plot.Plot, pts plotter.XYs, name string, style draw.LineStyle) error {
	if len(pts) == 0 {
		return nil
	}
	line, err := plotter.NewLine(pts)
	if err != nil {
		return err
	}
	line.LineStyle = style
	p.Add(line)
	if name != "" {
		p.Legend.Add(name, line)
	}
	return nil
}

// addChosen draws the expectation of what NCCL chooses thick, its 90 % interval as a
// band, and says where the choice changes. Where it is not calibrated the line has a
// gap.
func addChosen(p *plot.Plot, l *tune.Line, name string, tint color.RGBA, several bool) error {
	var run []tune.LinePoint
	named := false
	flush := func() error {
		if len(run) == 0 {
			return nil
		}
		if err := addBand(p, run, tint); err != nil {
			return err
		}
		label := name
		if named {
			label = ""
		}
		named = true
		pts := xys(run, true)
		run = nil
		return addLine(p, pts, label, draw.LineStyle{Color: tint, Width: vg.Points(2.2)})
	}
	var marks []tune.LinePoint
	for _, x := range l.Points {
		if !x.Calibrated {
			if err := flush(); err != nil {
				return err
			}
			continue
		}
		if last := len(marks) - 1; x.Algo != "" && (last < 0 || marks[last].Algo != x.Algo || marks[last].Proto != x.Proto) {
			marks = append(marks, x)
		}
		run = append(run, x)
	}
	if err := flush(); err != nil {
		return err
	}
	if several {
		return nil
	}
	return addMarks(p, marks)
}

// addBand shades the interval.
func addBand(p *plot.Plot, run []tune.LinePoint, tint color.RGBA) error {
	if len(run) < 2 {
		return nil
	}
	var edge plotter.XYs
	gbs := func(x *tune.LinePoint, us float64) float64 { return x.BusBWGBs * x.TimeUS / us }
	for i := range run {
		edge = append(edge, plotter.XY{X: float64(run[i].Bytes), Y: gbs(&run[i], run[i].LowUS)})
	}
	for i := len(run) - 1; i >= 0; i-- {
		edge = append(edge, plotter.XY{X: float64(run[i].Bytes), Y: gbs(&run[i], run[i].HighUS)})
	}
	band, err := plotter.NewPolygon(edge)
	if err != nil {
		return err
	}
	band.Color, band.LineStyle.Width = color.NRGBA{tint.R, tint.G, tint.B, 32}, 0
	p.Add(band)
	return nil
}

// addMarks names the algorithm and protocol where the choice changes.
func addMarks(p *plot.Plot, marks []tune.LinePoint) error {
	var at plotter.XYs
	var labels []string
	for _, x := range marks {
		at, labels = append(at, plotter.XY{X: float64(x.Bytes), Y: x.BusBWGBs}), append(labels, x.Algo+" "+x.Proto)
	}
	if len(at) == 0 {
		return nil
	}
	dots, err := plotter.NewScatter(at)
	if err != nil {
		return err
	}
	dots.GlyphStyle = draw.GlyphStyle{Color: black, Radius: vg.Points(3), Shape: draw.CircleGlyph{}}
	names, err := plotter.NewLabels(plotter.XYLabels{XYs: at, Labels: labels})
	if err != nil {
		return err
	}
	for i := range names.TextStyle {
		names.TextStyle[i] = text.Style{
			Color: black, Font: font.From(sans, 8), XAlign: draw.XLeft, YAlign: draw.YTop, Handler: plot.DefaultTextHandler,
		}
	}
	names.Offset = vg.Point{X: 7, Y: -1}
	p.Add(dots, names)
	p.Legend.Add("NCCL's choice changes", dots)
	return nil
}

// addPoints draws measured and published runs, with their range.
func addPoints(p *plot.Plot, l *tune.Line, name string, tint color.RGBA, several bool) error {
	var at struct {
		plotter.XYs
		plotter.YErrors
	}
	for _, x := range l.Points {
		at.XYs = append(at.XYs, plotter.XY{X: float64(x.Bytes), Y: x.BusBWGBs})
		var low, high float64
		if x.LowUS > 0 && x.HighUS > 0 {
			low, high = x.BusBWGBs*(1-x.TimeUS/x.HighUS), x.BusBWGBs*(x.TimeUS/x.LowUS-1)
		}
		at.YErrors = append(at.YErrors, struct{ Low, High float64 }{low, high})
	}
	dots, err := plotter.NewScatter(at.XYs)
	if err != nil {
		return err
	}
	dots.GlyphStyle = draw.GlyphStyle{Color: vermilion, Radius: vg.Points(3.6), Shape: draw.CrossGlyph{}}
	if l.Kind == tune.LinePublished {
		dots.GlyphStyle = draw.GlyphStyle{Color: vermilion, Radius: vg.Points(3.6), Shape: draw.TriangleGlyph{}}
		bars, err := plotter.NewYErrorBars(at)
		if err != nil {
			return err
		}
		bars.LineStyle = draw.LineStyle{Color: vermilion, Width: vg.Points(1)}
		p.Add(bars)
	}
	if several {
		dots.GlyphStyle.Color = tint
	}
	p.Add(dots)
	p.Legend.Add(name, dots)
	return nil
}
